"""Every rule of every format: one history that breaks it, and its mended twin."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from wakeful.dialects import get
from wakeful.dialects.binding import bound_problems
from wakeful.dialects.protocol import ForgetId, Remove


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) if blocks and not isinstance(blocks[0], str) else blocks[0]}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks) if blocks and not isinstance(blocks[0], str) else blocks[0]}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def use(i: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": i, "name": "f", "input": {}}


def result(i: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": i, "content": "ok"}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
HI = user("hi")


def png(width: int, height: int) -> dict[str, Any]:
    raw = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(raw).decode()},
    }


SERVER = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
MARK = {"cache_control": {"type": "ephemeral"}}
SUMMARY = {"type": "compaction", "content": "so far"}

ANTHROPIC: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("A1", [HI, assistant(use("a")), user("next")], [HI, assistant(use("a")), user(result("a"))], {}),
    ("A1", [HI, assistant(use("a"), use("b")), user(result("a"))], [HI, assistant(use("a")), user(result("a"))], {}),
    ("A1", [HI, assistant(use("a"))], [HI, assistant(use("a")), user(result("a"))], {"open_tail": False}),
    ("A1", [user(use("a"))], [HI, assistant(use("a"))], {}),
    ("A2", [user(result("a"))], [HI, assistant(use("a")), user(result("a"))], {}),
    ("A2", [HI, assistant(use("a")), user(result("a"), result("a"))], [HI, assistant(use("a")), user(result("a"))], {}),
    (
        "A3",
        [HI, assistant(use("a")), user(text("x"), result("a"))],
        [HI, assistant(use("a")), user(result("a"), text("x"))],
        {},
    ),
    ("A4", [HI, assistant(SERVER, text("x")), HI], [HI, assistant(SERVER, FOUND, text("x")), HI], {}),
    ("A4", [HI, assistant(FOUND, text("x")), HI], [HI, assistant(SERVER, FOUND, text("x")), HI], {}),
    ("A6", [HI, assistant({"type": "thinking", "thinking": "x"}, text("x"))], [HI, assistant(THOUGHT, text("x"))], {}),
    (
        "A6",
        [HI, assistant({"type": "redacted_thinking"}, text("x"))],
        [HI, assistant({"type": "redacted_thinking", "data": "zz"}, text("x"))],
        {},
    ),
    (
        "A7",
        [HI, assistant(use("a")), user(result("a"))],
        [HI, assistant(THOUGHT, use("a")), user(result("a"))],
        {"thinking": True},
    ),
    ("A9", [user("")], [HI], {}),
    ("A9", [user(text("  \n"))], [HI], {}),
    ("A9", [HI, assistant("So ")], [HI, assistant("So")], {}),
    ("A10", [assistant("hello"), HI], [HI, assistant("hello")], {}),
    ("A10", [HI, HI], [HI, assistant("x"), HI], {"strict": True}),
    ("A10", [HI, assistant("x")], [HI, assistant("x"), HI], {"strict": True}),
    ("A12", [user(png(9000, 10))], [user(png(7000, 10))], {}),
    ("A12", [user(*[png(3000, 10)] * 21)], [user(*[png(1500, 10)] * 21)], {}),
    ("A12", [user("x" * 33_600_000)], [user("x" * 1000)], {}),
    ("A13", [assistant({"type": "compaction", "content": ""}), HI], [assistant(SUMMARY), HI], {}),
    ("A13", [assistant(text("x"), SUMMARY), HI], [assistant(SUMMARY, text("x")), HI], {}),
    (
        "A13",
        [assistant(SUMMARY), HI, assistant(SUMMARY)],
        [assistant({"type": "compaction", "content": None}), HI, assistant(SUMMARY)],
        {},
    ),
    ("A15", [user(*[{**text("x"), **MARK}] * 5)], [user(*[{**text("x"), **MARK}] * 4)], {}),
]


def call(i: str) -> dict[str, Any]:
    return {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat_calls(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(i) for i in ids]}


def chat_result(i: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": i, "content": "ok"}


CHAT: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("C1", [HI, chat_result("a")], [HI, chat_calls("a"), chat_result("a")], {}),
    ("C1", [HI, chat_calls("a"), chat_result("a"), chat_result("a")], [HI, chat_calls("a"), chat_result("a")], {}),
    (
        "C2",
        [HI, chat_calls("a", "b"), chat_result("a"), HI],
        [HI, chat_calls("a", "b"), chat_result("b"), chat_result("a"), HI],
        {},
    ),
    ("C2", [HI, chat_calls("a")], [HI, chat_calls("a"), chat_result("a")], {"open_tail": False}),
    ("C4", [HI, HI], [HI, assistant("x"), HI], {"strict": True}),
    ("C4", [assistant("x"), HI], [HI, assistant("x")], {"strict": True}),
]


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


FC = item("function_call", id="fc_1", call_id="a", name="f", arguments="{}")
OUT = item("function_call_output", call_id="a", output="ok")
REASON = item("reasoning", id="rs_1", summary=[], encrypted_content="zz")
SAID = item("message", id="msg_1", role="assistant", content=[{"type": "output_text", "text": "x"}])

RESPONSES: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("R1", [HI, OUT], [HI, FC, OUT], {}),
    ("R1", [HI, FC, OUT, OUT], [HI, FC, OUT], {}),
    ("R2", [HI, FC, HI, SAID], [HI, FC, HI, OUT, SAID], {}),
    ("R2", [HI, FC, HI], [HI, FC], {}),
    ("R2", [HI, FC], [HI, FC, OUT], {"open_tail": False}),
    ("R3", [HI, REASON, HI], [HI, REASON, SAID, HI], {}),
    ("R3", [HI, REASON], [HI, REASON, FC], {}),
    ("R5", [HI, {**SAID, "id": "fc_9"}], [HI, SAID], {}),
    ("R5", [HI, {**FC, "id": "call_9"}], [HI, FC], {}),
    (
        "R6",
        [item("compaction", encrypted_content="a"), HI, item("compaction", encrypted_content="b")],
        [item("compaction", encrypted_content="b"), HI],
        {},
    ),
    ("R6", [item("compaction", encrypted_content="")], [item("compaction", encrypted_content="b")], {}),
]


def gem(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": p} if isinstance(p, str) else p for p in parts]}


GC, GR = {"functionCall": {"name": "f", "args": {}}}, {"functionResponse": {"name": "f", "response": {"result": "ok"}}}
GS = {**GC, "thoughtSignature": "sig"}
GH = gem("user", "hi")

GEMINI: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("G1", [gem("model", GC), gem("user", GR)], [GH, gem("model", GC), gem("user", GR)], {}),
    (
        "G1",
        [GH, gem("model", "x"), gem("model", GC), gem("user", GR)],
        [GH, gem("model", "x", GC), gem("user", GR)],
        {},
    ),
    ("G1", [gem("user", GC)], [GH, gem("model", GC)], {}),
    ("G2", [GH, gem("model", GC, GC), gem("user", GR)], [GH, gem("model", GC, GC), gem("user", GR, GR)], {}),
    ("G2", [GH, gem("model", "x"), gem("user", GR)], [GH, gem("model", GC), gem("user", GR)], {}),
    ("G2", [GH, gem("model", GC)], [GH, gem("model", GC), gem("user", GR)], {"open_tail": False}),
    ("G3", [gem("user")], [GH], {}),
    ("G3", [gem("user", "")], [GH], {}),
    (
        "G3",
        [gem("user", {"videoMetadata": {}})],
        [gem("user", {"inlineData": {"mimeType": "image/png", "data": "zz"}})],
        {},
    ),
    ("G4", [GH, gem("model", GC), gem("user", GR)], [GH, gem("model", GS), gem("user", GR)], {"thinking": True}),
    (
        "G4",
        [GH, gem("model", GS), gem("user", GR), gem("model", GC)],
        [GH, gem("model", GS), gem("user", GR), gem("model", GS, GC)],
        {},
    ),
    ("G5", [GH, GH], [GH, gem("model", "x"), GH], {}),
    ("G5", [gem("model", "x"), GH], [GH, gem("model", "x")], {}),
    ("G5", [GH, gem("model", "x")], [GH, gem("model", "x"), GH], {"strict": True}),
]


def bed(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"text": b} if isinstance(b, str) else b for b in blocks]}


def bu(i: str) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": i, "name": "f", "input": {}}}


def br(i: str, content: Any = None) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": i, "content": [content or {"text": "ok"}], "status": "success"}}


BH = bed("user", "hi")
BT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}

BEDROCK: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("B1", [BH, bed("assistant", bu("a"))], [BH, bed("assistant", "x")], {"tool_config": False}),
    (
        "B2",
        [BH, bed("assistant", bu("a")), bed("user", br("a"), br("b"))],
        [BH, bed("assistant", bu("a")), bed("user", br("a"))],
        {},
    ),
    ("B2", [BH, bed("assistant", bu("a")), BH], [BH, bed("assistant", bu("a")), bed("user", br("a"))], {}),
    (
        "B2",
        [BH, bed("assistant", bu("a"))],
        [BH, bed("assistant", bu("a")), bed("user", br("a"))],
        {"open_tail": False},
    ),
    ("B3", [bed("assistant", "x"), BH], [BH, bed("assistant", "x")], {}),
    ("B4", [BH, BH], [BH, bed("assistant", "x"), BH], {}),
    ("B4", [BH, bed("assistant", "x")], [BH, bed("assistant", "x"), BH], {"strict": True}),
    (
        "B5",
        [BH, bed("assistant", bu("a")), bed("user", br("a"), "and")],
        [BH, bed("assistant", bu("a")), bed("user", br("a"))],
        {"strict": True},
    ),
    ("B6", [bed("user", BT, "x")], [BH, bed("assistant", BT, "x")], {}),
    ("B6", [bed("user", bu("a"))], [BH, bed("assistant", bu("a"))], {}),
    (
        "B7",
        [BH, bed("assistant", bu("a")), bed("user", br("a", {"json": [1]}))],
        [BH, bed("assistant", bu("a")), bed("user", br("a", {"json": {"a": 1}}))],
        {},
    ),
    ("B7", [BH, bed("assistant", "x", BT)], [BH, bed("assistant", BT, "x")], {}),
    ("B7", [bed("user", " ")], [BH], {}),
    ("B7", [bed("user")], [BH], {}),
]

LH = HumanMessage("hi")
LC = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "a"}])
LR = ToolMessage("ok", tool_call_id="a")

LANGCHAIN: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("L1", [LH, RemoveMessage(id="")], [LH, RemoveMessage(id="x")], {}),
    ("L2", [LH, LR], [LH, LC, LR], {}),
    ("L2", [LH, LC, LR, LR], [LH, LC, LR], {}),
    ("L2", [LH, LC, LH], [LH, LC, LR, LH], {}),
    ("L2", [LH, LC], [LH, LC, LR], {"open_tail": False}),
    ("L2", [RemoveMessage(id="__remove_all__"), LR], [LR, RemoveMessage(id="__remove_all__"), LH], {}),
    ("L5", [LH, SystemMessage("s")], [SystemMessage("s"), LH], {"strict": True}),
]

CASES = [
    pytest.param(name, *case, id=f"{name}-{case[0]}-{n}")
    for name, table in (
        ("anthropic", ANTHROPIC),
        ("openai_chat", CHAT),
        ("openai_responses", RESPONSES),
        ("gemini", GEMINI),
        ("bedrock", BEDROCK),
        ("langchain", LANGCHAIN),
    )
    for n, case in enumerate(table)
]


@pytest.mark.parametrize(("name", "code", "broken", "good", "options"), CASES)
def test_a_broken_rule_is_reported_by_its_code_and_its_mended_twin_is_not(
    name: str, code: str, broken: list[Any], good: list[Any], options: dict[str, Any]
) -> None:
    dialect: Any = get(name)
    problems = dialect.validate(broken, **options)
    assert code in {problem.code for problem in problems}
    assert all(0 <= problem.index < len(broken) and len(problem.message) > 20 for problem in problems)
    assert dialect.validate(good, **options) == []


def test_an_unanswered_call_of_the_last_round_may_wait() -> None:
    for name, history in (
        ("anthropic", [HI, assistant(use("a"))]),
        ("openai_chat", [HI, chat_calls("a", "b"), chat_result("a")]),
        ("openai_responses", [HI, FC, {**FC, "call_id": "b"}, OUT]),
        ("gemini", [GH, gem("model", GC)]),
        ("bedrock", [BH, bed("assistant", bu("a"))]),
        ("langchain", [LH, LC]),
    ):
        assert get(name).validate(history) == [], name  # type: ignore[arg-type]
        assert get(name).validate(history, open_tail=False), name  # type: ignore[arg-type]


def test_thinking_off_in_earlier_turns_is_no_problem() -> None:
    history = [HI, assistant(use("a")), user(result("a")), assistant("done"), HI]
    assert get("anthropic").validate(history, thinking=True) == []


def test_gemini_earlier_turns_need_no_signature() -> None:
    history = [GH, gem("model", GC), gem("user", GR), gem("model", "x"), GH, gem("model", GS)]
    assert get("gemini").validate(history, thinking=True) == []


def test_a_server_tool_may_wait_for_the_clients_tool_that_its_code_calls() -> None:
    code = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}}
    done = {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}
    history = [HI, assistant(code, use("a")), user(result("a")), assistant(done, text("x")), HI]
    assert get("anthropic").validate(history) == []


def test_kept_thinking_whose_prefix_changed_is_a8_and_changed_thinking_is_a5() -> None:
    dialect = get("anthropic")
    before = [HI, assistant(THOUGHT, text("one")), user("more"), assistant(THOUGHT, text("two")), HI]
    assert bound_problems(dialect, before, before) == []
    assert [p.code for p in bound_problems(dialect, before, [user("summary"), *before[2:]])] == ["A8"]
    other = assistant({**THOUGHT, "thinking": "changed"}, text("two"))
    assert [p.code for p in bound_problems(dialect, before, [*before[:3], other])] == ["A5"]
    stripped = [dialect.rewrite(before[3], [Remove(0)])]
    assert bound_problems(dialect, before, [user("summary"), before[2], *stripped]) == []


def test_an_item_that_lost_its_reasoning_is_r4_until_its_id_is_forgotten() -> None:
    dialect = get("openai_responses")
    before = [HI, REASON, FC, OUT, SAID]
    after = [HI, FC, OUT, SAID]
    assert [(p.code, p.index) for p in bound_problems(dialect, before, after)] == [("R4", 1)]
    assert bound_problems(dialect, before, [HI, dialect.rewrite(FC, [ForgetId()]), OUT, SAID]) == []
    assert bound_problems(dialect, before, before) == []


def test_removing_reasoning_from_a_langchain_message_takes_the_ids_that_point_to_it() -> None:
    message = AIMessage(
        content=[
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "text", "text": "x", "id": "msg_1"},
        ],
        additional_kwargs={"__openai_function_call_ids__": {"a": "fc_1"}},
        response_metadata={"id": "resp_1", "model_name": "m"},
        tool_calls=[{"name": "f", "args": {}, "id": "a"}],
    )
    left = get("langchain").rewrite(message, [Remove(0)])
    assert left.content == [{"type": "text", "text": "x"}]
    assert left.additional_kwargs == {}
    assert left.response_metadata == {"model_name": "m"}
    assert message.content[1]["id"] == "msg_1"  # type: ignore[index]
