"""Shapes that real SDKs give, blocks that nobody knows, and what is no message at all."""

from __future__ import annotations

import math
from typing import Any

import pytest
from anthropic.types import Message, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, RemoveMessage, ToolMessage
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem
from pydantic import BaseModel

from wakeful.dialects import NAMES, get
from wakeful.dialects.protocol import (
    Flag,
    ForgetId,
    Kind,
    Media,
    Opaque,
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

every_dialect = pytest.mark.parametrize("name", NAMES)


def count(text: str, kind: str) -> int:
    return len(text) // 4


ANTHROPIC_REPLY = Message(
    id="msg_1",
    content=[
        ThinkingBlock(type="thinking", thinking="hm", signature="sig"),
        RedactedThinkingBlock(type="redacted_thinking", data="zzzz"),
        TextBlock(type="text", text="hey"),
        ToolUseBlock(type="tool_use", id="t1", name="f", input={"x": 1}),
    ],
    model="m",
    role="assistant",
    stop_reason="tool_use",
    type="message",
    usage=Usage(input_tokens=1, output_tokens=1),
)
CHAT_REPLY = ChatCompletionMessage.model_validate(
    {
        "role": "assistant",
        "content": "hey",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
    }
)
CALL_ITEM = ResponseFunctionToolCall(
    type="function_call", id="fc_1", call_id="t1", name="f", arguments='{"x": 1}', status="completed"
)
REASONING_ITEM = ResponseReasoningItem(type="reasoning", id="rs_1", summary=[], encrypted_content="zz")
MESSAGE_ITEM = ResponseOutputMessage.model_validate(
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hey", "annotations": []}],
    }
)


class Part(BaseModel):
    """The shape of google-genai's Part, snake case and optional."""

    text: str | None = None
    thought: bool | None = None
    function_call: dict[str, Any] | None = None
    thought_signature: bytes | None = None
    inline_data: dict[str, Any] | None = None


class Content(BaseModel):
    role: str | None = None
    parts: list[Part] | None = None


GEMINI_REPLY = Content(
    role="model",
    parts=[Part(text="hey"), Part(function_call={"name": "f", "args": {"x": 1}}, thought_signature=b"\x01\xff")],
)

WITH_CALL = [
    pytest.param("anthropic", ANTHROPIC_REPLY, id="anthropic-message"),
    pytest.param("anthropic", {"role": "assistant", "content": ANTHROPIC_REPLY.content}, id="anthropic-blocks"),
    pytest.param("openai_chat", CHAT_REPLY, id="chat-message"),
    pytest.param("openai_chat", {"role": "assistant", "tool_calls": CHAT_REPLY.tool_calls}, id="chat-calls"),
    pytest.param("openai_responses", CALL_ITEM, id="responses-item"),
    pytest.param("gemini", GEMINI_REPLY, id="gemini-content"),
    pytest.param("gemini", {"role": "model", "parts": GEMINI_REPLY.parts}, id="gemini-parts"),
]


@pytest.mark.parametrize(("name", "message"), WITH_CALL)
def test_sdk_objects_are_read_weighed_and_rewritten_in_kind(name: str, message: Any) -> None:
    dialect = get(name)
    weight, view = dialect.weigh(message, count), dialect.read(message)
    place, block = next((i, b) for i, b in enumerate(view.blocks) if isinstance(b, ToolUse))
    assert weight.kind == Kind.CALLS
    assert weight.calls == (block.id,)
    assert block.arguments == {"x": 1}
    edited = dialect.rewrite(message, [SetArguments(place, {"y": 2})])
    assert type(edited) is type(message)
    new = dialect.read(edited).blocks[place]
    assert isinstance(new, ToolUse)
    assert new.arguments == {"y": 2}
    again = dialect.read(message).blocks[place]
    assert isinstance(again, ToolUse)
    assert again.arguments == {"x": 1}
    assert dialect.recognises([message]) == 1.0
    assert dialect.rewrite(message, [Remove(i) for i in range(len(view.blocks))]) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("anthropic", ANTHROPIC_REPLY),
        ("anthropic", {"role": "assistant", "content": ANTHROPIC_REPLY.content}),
        ("openai_chat", CHAT_REPLY),
        ("openai_responses", CALL_ITEM),
        ("openai_responses", REASONING_ITEM),
        ("openai_responses", MESSAGE_ITEM),
    ],
)
def test_sdk_objects_come_back_as_objects_of_their_class(name: str, message: Any) -> None:
    dialect = get(name)
    back = dialect.loads(dialect.dumps(message))
    assert back == message
    assert type(back) is type(message)


def test_an_edited_sdk_object_shares_every_block_that_was_not_touched() -> None:
    edited = get("anthropic").rewrite(ANTHROPIC_REPLY, [Remove(0), SetText(2, "ho")])
    assert edited.content[0] is ANTHROPIC_REPLY.content[1]
    assert edited.content[2] is ANTHROPIC_REPLY.content[3]
    assert edited.content[1].text == "ho"
    assert ANTHROPIC_REPLY.content[2].text == "hey"  # type: ignore[union-attr]


def test_a_medium_in_an_sdk_object_becomes_a_text_in_an_object_of_its_class() -> None:
    message = Content(role="user", parts=[Part(inline_data={"mime_type": "image/png", "data": b"abc"})])
    edited = get("gemini").rewrite(message, [SetMedia(0, "[an image]")])
    assert edited.parts == [Part(text="[an image]")]


def test_an_object_of_no_known_sdk_is_refused_when_serialised() -> None:
    with pytest.raises(InputError, match="dictionary"):
        get("gemini").dumps(GEMINI_REPLY)


@pytest.mark.parametrize("name", ["os:system", "openai:OpenAI", "openai.types.chat:no_such", "subprocess:Popen"])
def test_serialised_text_never_makes_loads_import_or_call_anything_else(name: str) -> None:
    with pytest.raises(InputError, match=r"not loaded|does not have"):
        get("openai_chat").loads(f'{{"$wakeful":"model","class":"{name}","data":{{}}}}')


HOSTILE = [
    None,
    3,
    "text",
    [],
    {},
    {"role": None},
    {"role": 3},
    {"role": []},
    {"role": "nobody"},
    {"content": "x"},
    object(),
]


@every_dialect
@pytest.mark.parametrize("message", HOSTILE, ids=lambda value: type(value).__name__)
def test_what_is_no_message_is_a_clear_input_error(name: str, message: Any) -> None:
    dialect = get(name)
    for use in (dialect.read, lambda m: dialect.weigh(m, count), lambda m: dialect.rewrite(m, [Remove(0)])):
        with pytest.raises(InputError, match=r".{20}"):
            use(message)
    with pytest.raises(InputError):
        dialect.validate([message])
    assert dialect.recognises([message]) == 0.0


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.binary(max_size=4)
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
kinds = st.sampled_from(
    [
        "text",
        "image",
        "tool_use",
        "tool_result",
        "thinking",
        "document",
        "hologram",
        "input_text",
        "image_url",
        "function_call",
        "web_search_tool_result",
        "server_tool_use",
        "mcp_call",
        "shell_call_output",
        "computer_call",
        "reasoning",
    ]
)
keys = st.sampled_from(
    [
        "type",
        "text",
        "source",
        "content",
        "input",
        "id",
        "thinking",
        "functionCall",
        "functionResponse",
        "toolUse",
        "toolResult",
        "inlineData",
        "reasoningContent",
        "image",
        "output",
        "arguments",
        "summary",
        "action",
        "call_id",
        "json",
    ]
)
blocks = st.one_of(
    values,
    st.builds(lambda kind, rest: {**rest, "type": kind}, kinds | values, st.dictionaries(keys, values, max_size=4)),
    st.dictionaries(keys, values, max_size=3),
)


@every_dialect
@given(
    role=st.sampled_from(["user", "assistant", "model"]),
    content=st.lists(blocks, max_size=4) | values,
    extra=st.dictionaries(
        st.sampled_from(["tool_calls", "function_call", "refusal", "audio", "reasoning"]), values, max_size=2
    ),
)
def test_strange_blocks_are_read_weighed_and_serialised_without_an_exception(
    name: str, role: str, content: Any, extra: dict[str, Any]
) -> None:
    dialect = get(name)
    message: Any
    if name == "langchain":
        parts = [b for b in content if isinstance(b, (str, dict))] if isinstance(content, list) else str(content)
        message = AIMessage(content=parts) if role == "assistant" else HumanMessage(content=parts)
    elif name == "gemini":
        message = {"role": "model" if role != "user" else role, "parts": content if content is not None else []}
    else:
        message = {"role": "user" if role == "model" else role, "content": content, **extra}
    for other in NAMES:
        get(other).recognises([message])
    view, weight = dialect.read(message), dialect.weigh(message, count)
    assert weight.calls == tuple(b.id for b in view.blocks if isinstance(b, ToolUse) and not b.server)
    assert weight.results == tuple(b.call_id for b in view.blocks if isinstance(b, ToolResult) and not b.server)
    assert bool(weight.flags & Flag.THINKING) == any(isinstance(b, Thinking) for b in view.blocks)
    dialect.validate([message], thinking=True, strict=True)
    assert dialect.loads(dialect.dumps(message)) == message
    if view.blocks:
        assert dialect.rewrite(message, [Remove(i) for i in range(len(view.blocks))]) is None
        dialect.rewrite(message, [Remove(0)])


@every_dialect
def test_an_unknown_block_is_opaque_and_survives_an_edit_beside_it(name: str) -> None:
    dialect = get(name)
    odd: dict[str, Any] = {"type": "hologram", "beam": [1, 2]}
    message: Any
    if name == "openai_responses":
        view = dialect.read(odd)
        assert view.blocks == (Opaque("hologram", '{"type": "hologram", "beam": [1, 2]}'),)
        assert dialect.weigh(odd, count).kind == Kind.OTHER
        return
    if name == "langchain":
        message = HumanMessage(content=[odd, {"type": "text", "text": "long"}])
    elif name == "gemini":
        message = {"role": "user", "parts": [odd, {"text": "long"}]}
    else:
        message = {
            "role": "user",
            "content": [odd, {"text": "long"} if name == "bedrock" else {"type": "text", "text": "long"}],
        }
    assert isinstance(dialect.read(message).blocks[0], Opaque)
    edited = dialect.rewrite(message, [SetText(1, "s")])
    assert dialect.read(edited).blocks[1] == Text("s")
    assert (edited.content if name == "langchain" else edited.get("content", edited.get("parts")))[0] == odd


@every_dialect
def test_an_edit_that_does_not_suit_its_block_is_an_input_error(name: str) -> None:
    dialect = get(name)
    note = dialect.note("hi")
    for edit in (SetResult(0, "x"), SetArguments(0, {}), SetMedia(0, "x"), SetText(1, "x"), Remove(-1)):
        with pytest.raises(InputError, match="block"):
            dialect.rewrite(note, [edit])


SURROGATES = {"role": "user", "content": "broken \ud83d\ude00 \udc80", "\ud800": 1}
PLAIN_CASES: list[Any] = [
    SURROGATES,
    {"role": "user", "content": "注文 🙂 naïve \x00"},
    {"role": "user", "content": ({"type": "text", "text": "x"},)},
    {"role": "user", "content": [{"raw": b"\x00\xff", "more": bytearray(b"z")}]},
    {"role": "user", "content": "x", "$wakeful": "mine", 3: None, "big": 10**30, "f": 0.1, "inf": math.inf},
]


@pytest.mark.parametrize("message", PLAIN_CASES, ids=range(len(PLAIN_CASES)))
def test_what_json_can_not_hold_comes_back_exactly(message: Any) -> None:
    dialect = get("openai_chat")
    text = dialect.dumps(message)
    text.encode("utf-8")
    back = dialect.loads(text)
    assert back == message
    assert repr(back) == repr(message)


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=9)
_KEYS = st.text(max_size=9) | st.sampled_from(["$wakeful", "\ud800"]) | st.integers()
_VALUES = st.recursive(
    _LEAVES | st.sampled_from(["\udc80", "$wakeful"]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(_KEYS, inner),
    max_leaves=12,
)


@given(_VALUES)
def test_any_value_comes_back_exactly(value: Any) -> None:
    dialect = get("openai_chat")
    message = {"role": "user", "content": value}
    text = dialect.dumps(message)
    text.encode("utf-8")
    assert repr(dialect.loads(text)) == repr(message)


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ({"role": "tool", "tool_call_id": 7, "content": "x"}, ToolResult("7", "x")),
        ({"role": "tool", "tool_call_id": "c", "content": None}, ToolResult("c", "")),
        (
            {"role": "tool", "tool_call_id": "c", "content": '{"status": "pending"}'},
            ToolResult("c", '{"status": "pending"}', provisional=True),
        ),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, ToolUse("c", "", {})),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
            },
            ToolUse("c", "f", {"a": 1}),
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "custom",
                        "custom": {"name": "g", "input": "raw"},
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            ToolUse("c", "g", "raw"),
        ),
    ],
)
def test_unusual_chat_messages_are_read_like_usual_ones(message: Any, read: Any) -> None:
    assert get("openai_chat").read(message).blocks == (read,)


def test_not_a_number_comes_back() -> None:
    dialect = get("anthropic")
    back = dialect.loads(dialect.dumps({"role": "user", "content": [{"x": math.nan}]}))
    assert math.isnan(back["content"][0]["x"])


def test_what_can_not_be_given_back_is_refused_before_it_is_stored() -> None:
    loop: dict[str, Any] = {"role": "user"}
    loop["content"] = [loop]
    for bad in (loop, {"role": "user", "content": {1, 2}}, {"role": "user", "content": object()}):
        with pytest.raises(InputError):
            get("openai_chat").dumps(bad)
    for text in ("", "{", '{"$wakeful":"bytes"}', '{"$wakeful":"what"}'):
        with pytest.raises(InputError):
            get("openai_chat").loads(text)
    artifact = ToolMessage("x", tool_call_id="a", artifact=Part(text="x"))
    with pytest.raises(InputError, match="artifact"):
        get("langchain").dumps(artifact)


def test_langchain_messages_come_back_with_ids_and_extra_fields() -> None:
    dialect = get("langchain")
    for message in (
        AIMessage("x", id="m1", additional_kwargs={"k": [1]}, response_metadata={"model": "m"}, name="bob"),
        AIMessageChunk(content="x", id="m2"),
        ToolMessage("x", tool_call_id="a", artifact={"rows": (1, 2), "raw": b"\x00"}, status="error", id="t"),
        ChatMessage(content="x", role="user"),
        RemoveMessage(id="gone"),
    ):
        back = dialect.loads(dialect.dumps(message))
        assert back == message
        assert type(back) is type(message)


def test_every_copy_of_a_langchain_call_is_edited_and_removed_together() -> None:
    message = AIMessage(
        content=[{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}],
        tool_calls=[{"name": "f", "args": {"x": 1}, "id": "a"}],
        additional_kwargs={
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        },
    )
    dialect = get("langchain")
    assert [type(b) for b in dialect.read(message).blocks] == [Text, ToolUse]
    edited = dialect.rewrite(message, [SetArguments(1, {"y": 2})])
    assert edited.tool_calls[0]["args"] == {"y": 2}
    assert edited.content[1]["input"] == {"y": 2}
    assert edited.additional_kwargs["tool_calls"][0]["function"]["arguments"] == '{"y": 2}'
    gone = dialect.rewrite(message, [Remove(1)])
    assert (gone.tool_calls, gone.content) == ([], [{"type": "text", "text": "hi"}])
    assert gone.additional_kwargs["tool_calls"] == []
    assert message.tool_calls[0]["args"] == {"x": 1}


RESULT_SHAPES: list[tuple[str, Any, str]] = [
    (
        "anthropic",
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "long"}]}],
        },
        "long",
    ),
    (
        "bedrock",
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"json": {"k": 1}}]}}]},
        '{"k": 1}',
    ),
    (
        "gemini",
        {"role": "user", "parts": [{"function_response": {"name": "f", "id": "a", "response": {"k": 1}}}]},
        '{"k": 1}',
    ),
    (
        "gemini",
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "a", "response": {"output": "long"}}}]},
        "long",
    ),
    ("openai_chat", {"role": "function", "name": "f", "content": "long"}, "long"),
    (
        "openai_responses",
        {"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "long"}]},
        "long",
    ),
    (
        "openai_responses",
        {
            "type": "shell_call_output",
            "call_id": "a",
            "output": [{"stdout": "long", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
        },
        "long",
    ),
    ("openai_responses", {"type": "local_shell_call_output", "id": "a", "output": "long"}, "long"),
    (
        "openai_responses",
        {"type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "long"},
        "long",
    ),
]


@pytest.mark.parametrize(("name", "message", "text"), RESULT_SHAPES)
def test_a_cleared_result_keeps_its_shape_id_and_error(name: str, message: Any, text: str) -> None:
    dialect = get(name)
    (block,) = dialect.read(message).blocks
    assert isinstance(block, ToolResult)
    assert block.text == text
    edited = dialect.rewrite(message, [SetResult(0, "cleared")])
    (new,) = dialect.read(edited).blocks
    assert isinstance(new, ToolResult)
    assert (new.text, new.call_id, new.error) == ("cleared", block.call_id, block.error)
    assert edited.keys() == message.keys()


def test_a_gemini_edit_keeps_the_spelling_of_its_keys() -> None:
    for key in ("functionCall", "function_call"):
        message = {"role": "model", "parts": [{key: {"name": "f", "args": {"x": 1}}, "thoughtSignature": "s"}]}
        edited = get("gemini").rewrite(message, [SetArguments(0, {})])
        assert edited == {"role": "model", "parts": [{key: {"name": "f", "args": {}}, "thoughtSignature": "s"}]}


def test_a_cleared_screenshot_stays_an_image() -> None:
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64," + "A" * 8_000}
    item = {"type": "computer_call_output", "call_id": "a", "output": shot}
    dialect = get("openai_responses")
    weight = dialect.weigh(item, count)
    assert weight.flags == Flag.MEDIA
    assert weight.wire_bytes > 8_000
    edited = dialect.rewrite(item, [SetResult(0, "cleared")])
    assert edited["output"]["type"] == "computer_screenshot"
    assert dialect.weigh(edited, count).wire_bytes < 500


@pytest.mark.parametrize(
    "kind", ["function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call"]
)
def test_arguments_of_every_call_item_shrink_in_their_own_shape(kind: str) -> None:
    body: dict[str, Any] = {
        "function_call": {"name": "f", "arguments": '{"x": "' + "y" * 500 + '"}'},
        "custom_tool_call": {"name": "f", "input": "y" * 500},
        "shell_call": {"action": {"commands": ["y" * 500], "timeout_ms": 1}},
        "local_shell_call": {"action": {"type": "exec", "command": ["y" * 500], "env": {}}},
        "apply_patch_call": {"operation": {"type": "update_file", "path": "a", "diff": "y" * 500}},
    }[kind]
    item = {"type": kind, "call_id": "a", "id": "x_1", **body}
    dialect = get("openai_responses")
    edited = dialect.rewrite(item, [SetArguments(0, {"cleared": True})])
    assert dialect.weigh(edited, count).tokens < dialect.weigh(item, count).tokens - 100
    assert edited.keys() == item.keys()
    assert dialect.weigh(edited, count).calls == ("a",)


def test_forgetting_an_id_leaves_everything_else() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
    edited = get("openai_responses").rewrite(item, [ForgetId()])
    assert edited == {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    assert get("openai_responses").rewrite(CALL_ITEM, [ForgetId()]).id is None


PROVISIONAL = [
    ('{"status": "pending"}', True),
    ('{"status":"IN_PROGRESS","eta":3}', True),
    ('{"status": "running"}', True),
    ('{"status": "done"}', False),
    ('{"job": {"status": "pending"}}', False),
    ("the status is pending", False),
    ('[{"status": "pending"}]', False),
    ('{"status": "pending", broken', False),
]


@every_dialect
@pytest.mark.parametrize(("text", "waits"), PROVISIONAL)
def test_a_result_that_says_work_goes_on_is_provisional(name: str, text: str, waits: bool) -> None:
    dialect = get(name)
    answer = dialect.answer("a", text, name="f", error=False)
    (block,) = dialect.read(answer).blocks
    assert isinstance(block, ToolResult)
    assert block.provisional is waits
    assert bool(dialect.weigh(answer, count).flags & Flag.PROVISIONAL) is waits


MEDIA = [
    (
        "anthropic",
        {
            "role": "user",
            "content": [
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}
            ],
        },
        "document",
        4,
    ),
    (
        "anthropic",
        {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]},
        "image",
        0,
    ),
    (
        "openai_chat",
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}]},
        "audio",
        4,
    ),
    (
        "openai_chat",
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,QUJD"}}]},
        "document",
        32,
    ),
    (
        "openai_responses",
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,QUJD"}]},
        "image",
        26,
    ),
    ("gemini", {"role": "user", "parts": [{"inline_data": {"mime_type": "video/mp4", "data": b"ABC"}}]}, "video", 4),
    (
        "gemini",
        {"role": "user", "parts": [{"fileData": {"mimeType": "application/pdf", "fileUri": "gs://x"}}]},
        "document",
        0,
    ),
    ("bedrock", {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"ABC"}}}]}, "image", 4),
    ("langchain", HumanMessage(content=[{"type": "image", "base64": "QUJD", "mime_type": "image/png"}]), "image", 4),
    (
        "langchain",
        HumanMessage(content=[{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]),
        "image",
        26,
    ),
]


@pytest.mark.parametrize(("name", "message", "kind", "size"), MEDIA)
def test_media_are_weighed_by_a_fixed_cost_and_replaced_by_a_description(
    name: str, message: Any, kind: str, size: int
) -> None:
    dialect = get(name)
    (block,) = dialect.read(message).blocks
    assert isinstance(block, Media)
    assert (block.kind, block.bytes) == (kind, size)
    weight = dialect.weigh(message, count)
    assert weight.tokens == dialect.facts.message_overhead + dialect.facts.media_tokens
    assert weight.flags == Flag.MEDIA
    edited = dialect.rewrite(message, [SetMedia(0, "[was here]")])
    assert dialect.read(edited).blocks == (Text("[was here]"),)
    assert dialect.loads(dialect.dumps(message)) == message


SERVER_RESULTS: list[tuple[Any, Any]] = [
    ({"type": "mcp_tool_result", "content": [{"type": "text", "text": "long"}]}, [{"type": "text", "text": "cleared"}]),
    ({"type": "web_search_tool_result", "content": [{"type": "web_search_result", "title": "long"}]}, []),
    (
        {
            "type": "bash_code_execution_tool_result",
            "content": {"type": "r", "stdout": "long", "stderr": "x", "return_code": 0},
        },
        {"type": "r", "stdout": "cleared", "stderr": "", "return_code": 0},
    ),
    (
        {
            "type": "web_fetch_tool_result",
            "content": {"url": "u", "content": {"type": "document", "source": {"data": "long"}}},
        },
        {
            "url": "u",
            "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "cleared"}},
        },
    ),
    ({"type": "web_search_tool_result", "content": {"error_code": "e"}}, {"error_code": "e"}),
]


@pytest.mark.parametrize(("block", "content"), SERVER_RESULTS)
def test_a_cleared_result_of_the_providers_own_tool_keeps_a_shape_that_the_api_takes(block: Any, content: Any) -> None:
    dialect = get("anthropic")
    used = {"type": "server_tool_use", "id": "s1", "name": "t", "input": {}}
    message = {"role": "assistant", "content": [used, {**block, "tool_use_id": "s1"}]}
    assert dialect.weigh(message, count).calls == ()
    edited = dialect.rewrite(message, [SetResult(1, "cleared")])
    assert edited["content"][0] is used
    assert edited["content"][1] == {**block, "tool_use_id": "s1", "content": content}
