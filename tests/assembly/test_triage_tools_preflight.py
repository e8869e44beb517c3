"""Triage, tool routing and pre-flight rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.assembly.jit import MOST_TOP_K, clamp, tool_schema
from wakeful.assembly.preflight import gate, rules_of, skills_of
from wakeful.assembly.tools import route
from wakeful.assembly.triage import classify
from wakeful.needs import Embed, ToolSpec
from wakeful.records import MemoryNode, MemoryScope, Source

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "label"),
    [
        ("What is my order number?", "knowledge"),
        ("Where did Ana move to?", "knowledge"),
        ("Tell me what we decided about the API", "knowledge"),
        ("Cancel my order 4471", "action"),
        ("Please send the report to Bo", "action"),
        ("Can you book a table for two?", "action"),
        ("Wo wohnt Ana?", "knowledge"),
        ("Storniere bitte die Bestellung", "action"),
        ("Où habite Ana ?", "knowledge"),
        ("¿Dónde vive Ana?", "knowledge"),
        ("Отмените заказ 4471", "action"),
        ("Где живёт Анна?", "knowledge"),
        ("安娜住在哪里？", "knowledge"),
        ("请把订单取消", "action"),
        ("アナさんはどこに住んでいますか？", "knowledge"),
        ("予約してください", "action"),
        ("아나는 어디에 살아요?", "knowledge"),
        ("예약해 주세요", "action"),
        ("hm", "ambiguous"),
        ("", "ambiguous"),
    ],
)
def test_a_query_is_told_by_its_signs(query, label):
    verdict = classify(query)
    assert verdict.label == label
    assert 0 <= verdict.confidence <= 1
    assert verdict.reasons or label == "ambiguous"


@given(st.text())
def test_triage_is_total_and_deterministic(query):
    assert classify(query) == classify(query)


TOOLS = (
    ToolSpec("refund_order", "Pay the money of an order back"),
    ToolSpec("get_weather", "Weather of a city"),
    ToolSpec("searchFlights", "Find flights between two airports"),
    ToolSpec("查询订单", "查询客户的订单状态"),
)


def answered(flow, vectors=None):
    try:
        need = next(flow)
        while True:
            assert isinstance(need, Embed)
            need = flow.send([vectors[text] for text in need.texts])
    except StopIteration as stop:
        return stop.value


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("refund my order please", "refund_order"),
        ("weather in Oslo", "get_weather"),
        ("search flights to Rome", "searchFlights"),
        ("我的订单状态", "查询订单"),
    ],
)
def test_routing_finds_a_tool_by_its_words(query, name):
    routing = answered(route(query, TOOLS))
    assert routing.narrowed
    assert name in routing.names
    assert routing.names[0] == name


def test_routing_keeps_everything_when_nothing_matches():
    routing = answered(route("blorp", TOOLS))
    assert not routing.narrowed
    assert routing.names == tuple(tool.name for tool in TOOLS)


def test_routing_keeps_what_is_always_included():
    routing = answered(route("weather in Oslo", TOOLS, always_include=("refund_order",), most=1))
    assert routing.names == ("refund_order", "get_weather")


def test_routing_by_meaning_finds_what_shares_no_word():
    from array import array

    query = "is it raining"
    vectors = {f"{tool.name}: {tool.description}": array("f", [0, 1]).tobytes() for tool in TOOLS}
    vectors[query] = vectors["get_weather: Weather of a city"] = array("f", [1, 0]).tobytes()
    kept = {}
    assert answered(route(query, TOOLS, meanings=kept), vectors).names == ("get_weather",)
    assert kept == {text: vector for text, vector in vectors.items() if text != query}
    # What is kept is not asked for again.
    assert answered(route(query, TOOLS, meanings=kept), {query: vectors[query]}).names == ("get_weather",)


def skill(tool: str, before: object, scope: str = "org:acme", **values) -> MemoryNode:
    return MemoryNode.new(
        scope=MemoryScope.parse(scope), layer="procedural", content="", at=AT,
        properties={"tool": tool, "preconditions": before}, **values,
    )  # fmt: skip


def test_a_skill_gives_one_positive_and_one_negative_rule():
    rules = rules_of(skills_of([skill("refund", ["lookup"])]))
    assert rules == ("Call lookup before refund.", "Do not call refund until lookup has succeeded.")


def test_the_nearest_scope_wins_over_its_ancestors():
    skills = skills_of([skill("refund", ["ask_boss"]), skill("refund", ["lookup"], "org:acme/user:ana")])
    assert [s.preconditions for s in skills] == [("lookup",)]


@pytest.mark.parametrize("values", [{"status": "draft"}, {"status": "retracted"}, {"source": Source(trust="low")}])
def test_drafts_and_low_trust_never_become_rules(values):
    assert skills_of([skill("refund", ["lookup"], **values)]) == ()


def test_the_gate_refuses_until_the_precondition_is_met():
    skills = skills_of([skill("refund", ["lookup", "confirm"])])
    assert gate("refund", {"lookup"}, skills).missing == ("confirm",)
    assert "confirm" in gate("refund", set(), skills).message
    assert gate("refund", {"lookup", "confirm"}, skills) is None
    assert gate("other", set(), skills) is None


@pytest.mark.parametrize("before", [7, [], [""], {"a": 1}, "", [1]])
def test_the_gate_fails_closed_on_a_precondition_that_it_cannot_read(before):
    skills = skills_of([skill("refund", before)])
    if before == []:
        assert skills[0].preconditions == ()
    else:
        assert gate("refund", {"lookup"}, skills) is not None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"domain": "orders"}, ("orders", 5)),
        ({"domain": "orders", "top_k": 999}, ("orders", MOST_TOP_K)),
        ({"domain": "orders", "top_k": -3}, ("orders", 1)),
        ({"domain": "orders", "top_k": "7"}, ("orders", 7)),
    ],
)
def test_the_hydrate_tool_clamps_its_arguments(arguments, expected):
    assert clamp(arguments) == expected


@pytest.mark.parametrize(
    "arguments",
    [{}, {"domain": ""}, {"domain": 3}, {"domain": "x", "top_k": "many"}, {"domain": "x", "top_k": float("inf")}],
)
def test_the_hydrate_tool_answers_bad_arguments_with_a_text(arguments):
    assert clamp(arguments).startswith("error: ")


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock"])
def test_a_tool_is_defined_in_each_providers_shape(provider):
    assert TOOLS[0].name in str(tool_schema(TOOLS[0], provider))
