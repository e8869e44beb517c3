"""What every dialect promises, on generated conversations."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.compaction.measure import History, weigh_all
from wakeful.dialects import NAMES, get, guess
from wakeful.dialects.protocol import (
    Flag,
    Kind,
    Media,
    Remove,
    SetArguments,
    SetMedia,
    SetResult,
    SetText,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from wakeful.errors import InputError
from wakeful.testing import adversarial, random_conversation

every_dialect = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, 10_000)


def count(text: str, kind: str) -> int:
    return len(text) // 4


def native_parts(message: Any) -> list[Any]:
    """The objects on the first level of a message: what an edit elsewhere must leave the same."""
    content = (
        message.content
        if hasattr(message, "content")
        else message.get("content", message.get("parts", message.get("output")))
    )
    return list(content) if isinstance(content, list) else []


def nameless(blocks: tuple[Any, ...]) -> list[str]:
    return [re.sub(r"#\d+", "", repr(block)) for block in blocks]


@every_dialect
@given(seed=seeds)
def test_a_message_comes_back_from_its_serialised_form(name: str, seed: int) -> None:
    dialect = get(name)
    for message in random_conversation(name, seed, 3):
        text = dialect.dumps(message)
        assert dialect.loads(text) == message
        assert dialect.dumps(dialect.loads(text)) == text


@every_dialect
@given(seed=seeds)
def test_weight_agrees_with_what_is_read(name: str, seed: int) -> None:
    dialect = get(name)
    for message in random_conversation(name, seed, 4, open_tail=True):
        weight, view = dialect.weigh(message, count), dialect.read(message)
        calls = tuple(b.id for b in view.blocks if isinstance(b, ToolUse) and not b.server)
        results = tuple(b.call_id for b in view.blocks if isinstance(b, ToolResult) and not b.server)
        assert (weight.calls, weight.results) == (calls, results)
        kinds = {"system": {Kind.SYSTEM}, "user": {Kind.USER}, "tool": {Kind.RESULTS}}
        assert weight.kind in kinds.get(view.role, {Kind.CALLS if calls else Kind.ASSISTANT})
        assert bool(weight.flags & Flag.THINKING) == any(isinstance(b, Thinking) for b in view.blocks)
        assert bool(weight.flags & Flag.MEDIA) == any(isinstance(b, Media) for b in view.blocks)
        assert bool(weight.flags & Flag.PROVISIONAL) == any(
            b.provisional for b in view.blocks if isinstance(b, ToolResult)
        )
        texts = sum(count(b.text, "text") for b in view.blocks if isinstance(b, (Text, ToolResult)))
        assert weight.tokens >= texts + dialect.facts.message_overhead
        assert weight.wire_bytes >= sum(b.bytes for b in view.blocks if isinstance(b, Media))


@every_dialect
@given(seed=seeds)
def test_messages_weigh_the_same_together_and_alone(name: str, seed: int) -> None:
    dialect = get(name)
    messages = random_conversation(name, seed, 4, open_tail=True)
    messages += [message for history in adversarial(name).values() for message in history]
    weights = [dialect.weigh(message, count) for message in messages]
    assert History(messages, weigh_all(dialect, messages, count), ()).weights == weights


@given(seed=seeds)
def test_a_field_more_changes_nothing_of_what_is_read_and_weighed(seed: int) -> None:
    dialect = get("openai_chat")
    for message in random_conversation("openai_chat", seed, 4, open_tail=True):
        more = {**message, "annotations": []}
        assert dialect.read(more) == dialect.read(message)
        assert weigh_all(dialect, [more], count) == weigh_all(dialect, [message], count)


@every_dialect
@given(seed=seeds)
def test_base64_is_never_counted_as_text(name: str, seed: int) -> None:
    dialect = get(name)
    for message in random_conversation(name, seed, 4):
        seen: list[str] = []

        def record(text: str, kind: str, seen: list[str] = seen) -> int:
            seen.append(text)
            return 0

        weight = dialect.weigh(message, record)
        assert all("iVBORw0KGgo" not in text for text in seen)
        if weight.flags & Flag.MEDIA:
            assert weight.wire_bytes >= 4_000
            assert weight.tokens >= dialect.facts.media_tokens


@every_dialect
@given(seed=seeds)
def test_a_rewrite_changes_what_it_was_asked_to_and_nothing_else(name: str, seed: int) -> None:
    dialect = get(name)
    for message in random_conversation(name, seed, 3):
        before = copy.deepcopy(message)
        view = dialect.read(message)
        for i, block in enumerate(view.blocks):
            if isinstance(block, Text):
                edited, wanted = dialect.rewrite(message, [SetText(i, "short")]), "short"
                got: Any = dialect.read(edited).blocks[i].text  # type: ignore[union-attr]
            elif isinstance(block, ToolResult):
                edited, wanted = dialect.rewrite(message, [SetResult(i, "cleared")]), "cleared"
                new = dialect.read(edited).blocks[i]
                assert isinstance(new, ToolResult)
                assert (new.call_id, new.error, new.name) == (block.call_id, block.error, block.name)
                got = new.text
            elif isinstance(block, ToolUse):
                edited, wanted = dialect.rewrite(message, [SetArguments(i, {"a": [1]})]), {"a": [1]}  # type: ignore[assignment]
                new_use = dialect.read(edited).blocks[i]
                assert isinstance(new_use, ToolUse)
                assert (new_use.id, new_use.name) == (block.id, block.name)
                got = new_use.arguments
            elif isinstance(block, Media):
                edited, wanted = dialect.rewrite(message, [SetMedia(i, "[an image]")]), "[an image]"
                got = dialect.read(edited).blocks[i].text  # type: ignore[union-attr]
            else:
                continue
            assert got == wanted
            after = dialect.read(edited)
            assert (after.role, after.id, len(after.blocks)) == (view.role, view.id, len(view.blocks))
            assert [b for k, b in enumerate(after.blocks) if k != i] == [b for k, b in enumerate(view.blocks) if k != i]
            if name != "langchain":
                untouched = [part for k, part in enumerate(native_parts(message)) if k != i]
                kept = {id(part) for part in native_parts(edited)}
                assert sum(id(part) not in kept for part in untouched) <= (1 if name == "openai_chat" else 0)
        assert message == before


@every_dialect
@given(seed=seeds)
def test_a_message_is_none_when_every_block_is_removed_and_the_same_object_without_edits(name: str, seed: int) -> None:
    dialect = get(name)
    for message in random_conversation(name, seed, 3):
        blocks = dialect.read(message).blocks
        assert dialect.rewrite(message, []) is message
        assert dialect.rewrite(message, [Remove(i) for i in range(len(blocks))]) is None
        for i in range(len(blocks)):
            left = dialect.rewrite(message, [Remove(i)])
            if len(blocks) > 1:
                # Gemini calls are numbered within their message, so ids are compared by name.
                assert nameless(dialect.read(left).blocks) == nameless(blocks[:i] + blocks[i + 1 :])


@every_dialect
@given(seed=seeds)
def test_generated_conversations_are_valid_and_recognised(name: str, seed: int) -> None:
    dialect = get(name)
    messages = random_conversation(name, seed, 3, open_tail=True)
    assert dialect.validate(messages, thinking=True) == []
    assert guess(messages).name == name


@every_dialect
@given(seed=seeds)
def test_a_result_cut_from_its_call_is_a_problem(name: str, seed: int) -> None:
    dialect = get(name)
    messages = random_conversation(name, seed, 4)
    for i, message in enumerate(messages):
        weight = dialect.weigh(message, count)
        if weight.calls:
            assert dialect.validate(messages[:i] + messages[i + 1 :])
            assert dialect.validate(messages[: i + 1], open_tail=False)
            return


@every_dialect
def test_neighbours_of_one_role_merge_with_their_blocks_in_order(name: str) -> None:
    dialect = get(name)
    one, two = dialect.note("first"), dialect.note("second")
    merged = dialect.merge([one, two])
    assert dialect.read(merged).blocks == (Text("first"), Text("second"))
    assert dialect.read(merged).role == "user"
    assert dialect.merge([one]) is one
    assert (dialect.read(one).blocks, dialect.read(two).blocks) == ((Text("first"),), (Text("second"),))


@pytest.mark.parametrize("name", ["anthropic", "gemini", "bedrock"])
def test_results_stand_first_in_a_merged_message(name: str) -> None:
    dialect = get(name)
    merged = dialect.merge([dialect.note("go on"), dialect.answer("c1", "done", name="f", error=False)])
    blocks = dialect.read(merged).blocks
    assert isinstance(blocks[0], ToolResult)
    assert blocks[1] == Text("go on")
    assert dialect.weigh(merged, count).kind == Kind.USER


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "langchain"])
def test_results_of_single_result_formats_are_never_merged(name: str) -> None:
    dialect = get(name)
    with pytest.raises(InputError):
        dialect.merge([dialect.answer("c1", "x"), dialect.answer("c2", "y")])


@every_dialect
def test_an_answer_answers_its_call(name: str) -> None:
    dialect = get(name)
    messages = random_conversation(name, 7, 1, calls=False, open_tail=True)
    (call_id,) = dialect.weigh(messages[-1], count).calls
    block = next(b for b in dialect.read(messages[-1]).blocks if isinstance(b, ToolUse))
    answer = dialect.answer(call_id, "not run", name=block.name)
    assert dialect.weigh(answer, count).results == (call_id,)
    assert dialect.validate([*messages, answer], open_tail=False) == []
    if name not in ("openai_chat", "openai_responses"):
        assert dialect.read(answer).blocks[0].error  # type: ignore[union-attr]


BROKEN = {"mixed_orphan", "mixed_orphan_run", "interleaved_user", "no_user_in_head"}


@every_dialect
def test_adversarial_inputs_are_broken_where_they_are_meant_to_be(name: str) -> None:
    dialect = get(name)
    inputs = adversarial(name)
    assert len(inputs) == 9
    for title, messages in inputs.items():
        problems = dialect.validate(messages)
        if title not in BROKEN:
            assert problems == [], title
        elif title in ("mixed_orphan", "mixed_orphan_run"):
            assert problems, title
    if dialect.facts.starts_with_user:
        assert dialect.validate(inputs["no_user_in_head"])


@every_dialect
def test_the_same_seed_gives_the_same_conversation(name: str) -> None:
    assert random_conversation(name, 3, 2) == random_conversation(name, 3, 2)
    assert random_conversation(name, 3, 2) != random_conversation(name, 4, 2)


@every_dialect
def test_validation_takes_time_in_proportion_to_messages(name: str) -> None:
    dialect = get(name)
    reads = 0

    class Counting(list):  # type: ignore[type-arg]
        def __getitem__(self, item: Any) -> Any:
            nonlocal reads
            reads += 1
            return super().__getitem__(item)

    messages = Counting(random_conversation(name, 1, 20))
    dialect.validate(messages)
    assert reads <= 3 * len(messages)
