"""The local provider is as strict as the real ones: every broken request is refused, for the reason of the rules."""

from __future__ import annotations

import copy
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from wakeful.testing import Failure, ProviderServer, Say
from wakeful.testing.wire import check, sign

TASK = {"role": "user", "content": "Fix it."}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "run", "input": {}}


def result(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "ok"}


def claude(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "claude-test", "max_tokens": 5_000, "messages": messages, **more}


def thought(prefix: list[Any], text: str = "Hm.") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": sign(prefix, text)}


def marked(count: int) -> list[dict[str, Any]]:
    return [{"type": "text", "text": f"s{i}", "cache_control": {"type": "ephemeral"}} for i in range(count)]


ON = {"type": "enabled", "budget_tokens": 2_000}
LOOP = [TASK, {"role": "assistant", "content": [thought([TASK]), use("a")]}, {"role": "user", "content": [result("a")]}]

VALID_CLAUDE = [
    claude([TASK]),
    claude(
        [
            TASK,
            {"role": "assistant", "content": [use("a"), use("b")]},
            {"role": "user", "content": [result("b"), result("a")]},
        ]
    ),
    claude(LOOP, thinking=ON),
    claude([TASK], system=marked(3), tools=[{"name": "f", "input_schema": {"type": "object"}}]),
]


@pytest.mark.parametrize("body", VALID_CLAUDE)
def test_a_valid_request_is_taken(body):
    assert check("anthropic", body) is None


BROKEN_CLAUDE = [
    (claude([]), "at least one message"),
    (claude([TASK], max_tokens=None), "max_tokens"),
    (claude([TASK], model=None), "model"),
    (claude([TASK, {"role": "assistant", "content": [use("a")]}, TASK]), "A1"),
    (
        claude(
            [TASK, {"role": "assistant", "content": [use("a"), use("b")]}, {"role": "user", "content": [result("a")]}]
        ),
        "A1",
    ),
    (claude([TASK, {"role": "assistant", "content": [use("a")]}]), "A1"),
    (claude([{"role": "user", "content": [result("a")]}]), "A2"),
    (claude([TASK, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": [result("a")]}]), "A2"),
    (claude([TASK, {"role": "assistant", "content": [{"type": "text", "text": " "}]}, TASK]), "A9"),
    (claude([{"role": "user", "content": ""}]), "A9"),
    (claude([{"role": "assistant", "content": "Hi."}, TASK]), "A10"),
    (claude([TASK], system=marked(5)), "cache_control"),
    (claude([TASK], thinking=ON, temperature=0.5), "temperature"),
    (claude([TASK], thinking={"type": "enabled", "budget_tokens": 10}), "budget_tokens"),
    (claude([TASK], thinking=ON, max_tokens=2_000), "max_tokens"),
    (claude([TASK], tools=[{"name": "f"}, {"name": "f"}]), "unique"),
    (claude([TASK], tools=[{}]), "name"),
    (
        claude(
            [TASK, {"role": "assistant", "content": [use("a")]}, {"role": "user", "content": [result("a")]}],
            thinking=ON,
        ),
        "A7",
    ),
]


@pytest.mark.parametrize(("body", "reason"), BROKEN_CLAUDE, ids=[reason for _, reason in BROKEN_CLAUDE])
def test_a_broken_anthropic_request_is_refused_for_its_reason(body, reason):
    refusal = check("anthropic", body)
    assert refusal is not None
    assert reason in refusal.message


def test_thinking_is_bound_to_its_text_and_to_what_stood_before_it():
    changed = copy.deepcopy(LOOP)
    changed[1]["content"][0]["thinking"] = "Hm!"
    refusal = check("anthropic", claude(changed, thinking=ON))
    assert refusal is not None
    assert "Invalid `signature`" in refusal.message
    moved = copy.deepcopy(LOOP)
    moved[0]["content"] = "A summary of what was."
    refusal = check("anthropic", claude(moved, thinking=ON))
    assert refusal is not None
    assert "bound to a different conversation" in refusal.message
    assert check("anthropic", claude(moved, thinking=ON), bind_thinking=False) is None


def test_cache_markers_and_the_shape_of_text_do_not_change_what_thinking_is_bound_to():
    marked_loop = copy.deepcopy(LOOP)
    marked_loop[0]["content"] = [{"type": "text", "text": "Fix it.", "cache_control": {"type": "ephemeral"}}]
    assert check("anthropic", claude(marked_loop, thinking=ON)) is None


def chat(*messages: Any) -> dict[str, Any]:
    return {"model": "gpt-test", "messages": list(messages)}


CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": i, "type": "function", "function": {"name": "run", "arguments": "{}"}} for i in ("a", "b")],
}


def answer(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "ok"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (chat(TASK, CALLS, answer("a"), answer("b")), None),
        (chat(TASK, answer("a")), "C1"),
        (chat(TASK, CALLS, answer("a")), "C2"),
        (chat(TASK, CALLS, answer("a"), TASK, answer("b")), "C"),
        (chat(), "at least one message"),
    ],
)
def test_a_chat_request_is_judged_by_the_rules_of_the_format(body, reason):
    refusal = check("openai_chat", body)
    assert (refusal is None) if reason is None else (refusal is not None and reason in refusal.message)


def responses(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-test", "input": list(items), **more}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
FC = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "run", "arguments": "{}"}
OUT = {"type": "function_call_output", "call_id": "a", "output": "ok"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (responses(TASK, REASONING, FC, OUT), None),
        ({"model": "gpt-test", "input": "just text"}, None),
        (responses(TASK, OUT), "R1"),
        (responses(TASK, FC), "R2"),
        (responses(TASK, REASONING, TASK), "R3"),
        (responses(TASK, {**FC, "id": "msg_1"}, OUT), "R5"),
        (responses(TASK, previous_response_id="resp_1"), "not found"),
    ],
)
def test_a_responses_request_is_judged_by_the_rules_of_the_format(body, reason):
    refusal = check("openai_responses", body)
    assert (refusal is None) if reason is None else (refusal is not None and reason in refusal.message)


def post(url: str, body: Any) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data=raw, headers={"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_a_refused_request_takes_no_planned_answer_and_is_kept_with_its_reason():
    with ProviderServer() as server:
        server.plan("the answer")
        url = f"{server.anthropic_url}/v1/messages"
        status, body = post(url, claude([{"role": "user", "content": [result("a")]}]))
        assert (status, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
        status, body = post(url, claude([TASK]))
        assert (status, body["content"][0]["text"]) == (200, "the answer")
        assert len(server.requests) == 2
        assert len(server.refusals) == 1


def test_what_is_no_request_at_all_is_refused():
    with ProviderServer() as server:
        assert post(f"{server.openai_url}/chat/completions", b"{not json")[0] == 400
        assert post(f"{server.openai_url}/embeddings", {})[0] == 404
        assert server.requests == []
        status, body = post(f"{server.openai_url}/chat/completions", chat(TASK))
        assert status == 500
        assert "no answer planned" in body["error"]["message"]


def test_an_answer_may_depend_on_the_request():
    with ProviderServer(lambda got: Say(got.body["messages"][-1]["content"].upper())) as server:
        _, body = post(f"{server.openai_url}/chat/completions", chat(TASK))
        assert body["choices"][0]["message"]["content"] == "FIX IT."
        server.plan(Failure.rate_limit(retry_after=1))
        assert post(f"{server.openai_url}/chat/completions", chat(TASK))[0] == 429
        assert post(f"{server.openai_url}/chat/completions", chat(TASK))[0] == 200
