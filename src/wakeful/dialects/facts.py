"""What each wire format demands, as a table.

Sources, by column: roles and order from the providers' API references (docs.anthropic.com/en/api/messages,
platform.openai.com/docs/api-reference, ai.google.dev/api/generate-content,
docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html); thinking from
docs.anthropic.com/en/docs/build-with-claude/extended-thinking, platform.openai.com/docs/guides/reasoning and
ai.google.dev/gemini-api/docs/thought-signatures; media tokens from the providers' vision guides (Anthropic: width x
height / 750, about 1,600 at the largest size; OpenAI: 765 for a 1024 x 1024 image in tiles of 170 + 85; Gemini: 258 a
tile).
"""

from __future__ import annotations

from wakeful.dialects.protocol import Facts

FACTS: dict[str, Facts] = {
    "anthropic": Facts(
        alternates=False,
        starts_with_user=True,
        results_in_user=True,
        thinking="all",
        message_overhead=4,
        media_tokens=1600,
        system_in_messages=False,
    ),
    "openai_chat": Facts(message_overhead=4, media_tokens=765),
    "openai_responses": Facts(thinking="items", message_overhead=4, media_tokens=765),
    "gemini": Facts(
        alternates=True,
        starts_with_user=True,
        results_in_user=True,
        thinking="current_turn",
        calls_after_user=True,
        message_overhead=4,
        media_tokens=258,
        system_in_messages=False,
        content_key="parts",
    ),
    "bedrock": Facts(
        alternates=True,
        starts_with_user=True,
        results_in_user=True,
        thinking="all",
        message_overhead=4,
        media_tokens=1600,
        system_in_messages=False,
    ),
    "langchain": Facts(thinking="all", message_overhead=4, media_tokens=1600),
}
"""Facts by dialect name."""
