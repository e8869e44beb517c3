"""The strata: what is stable stays byte-identical, budgets hold, and what is reported is what stands there."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.assembly.allocate import JOINT, Section, allocate
from wakeful.assembly.context import ContextConfig, Piece
from wakeful.assembly.hydrate import hydrate_hits, unwrap
from wakeful.assembly.stratified import Services, Task, render_prompt, shape, shown_lines
from wakeful.assembly.template import Template
from wakeful.errors import ConfigError
from wakeful.needs import ToolSpec
from wakeful.records import MemoryNode, MemoryScope

AT = datetime(2026, 3, 1, tzinfo=UTC)
SCOPE = MemoryScope.parse("org:acme/user:ana")


def tokens(text: str) -> int:
    return (len(text) + 3) // 4


class Hit:
    def __init__(self, text: str, number: int) -> None:
        self.node = MemoryNode.new(scope=SCOPE, layer="semantic", content=text, at=AT, id=f"n{number}")
        self.score = 1.0 / (number + 1)
        self.reasons = ("words",)


SERVICES = Services(
    template=Template(name="Ada", description="Support of Acme", rules=("Be brief.",), preferences=("Metric units",)),
    tenant_id="acme",
    tools=(ToolSpec("refund", "Pay back an order"), ToolSpec("lookup", "Find an order")),
    rules=("Call lookup before refund.",),
)


def prompt(task: Task, *, budget: int = 2_000, services: Services = SERVICES):
    return render_prompt(services, task, budget=budget, memory_least=50, memory_most=800, tokens=tokens)


storable = st.characters(codec="utf-8", exclude_characters="\x00")
texts = st.text(storable, max_size=60)


@given(memory=st.lists(texts, max_size=8), due=texts, time=texts, active=st.none() | st.lists(texts, max_size=3))
def test_nothing_of_the_turn_moves_a_byte_of_the_stable_strata(memory, due, time, active):
    hydrated = hydrate_hits([Hit(text, i) for i, text in enumerate(memory)], budget=500, tokens=tokens)
    quiet = prompt(Task())
    loud = prompt(
        Task(
            memory_context=hydrated.context,
            prospective=due,
            time=time,
            active_tools=None if active is None else tuple(active),
        )
    )
    assert loud.system_blocks == quiet.system_blocks
    assert loud.overrides == quiet.overrides
    assert loud.text.startswith(quiet.text)


def test_the_order_in_which_tools_and_preferences_come_does_not_move_the_hash():
    turned = Services(
        template=Template(
            name="Ada", description="Support of Acme", rules=("Be brief.",), preferences=("Metric units",)
        ),
        tenant_id="acme",
        tools=tuple(reversed(SERVICES.tools)),
        rules=SERVICES.rules,
    )
    assert prompt(Task(), services=turned).overrides == prompt(Task()).overrides


@pytest.mark.parametrize(
    "other",
    [
        Services(template=Template(name="Bea"), tenant_id="acme"),
        Services(template=SERVICES.template, tenant_id="acme-corp", tools=SERVICES.tools, rules=SERVICES.rules),
        Services(template=SERVICES.template, tenant_id="acme", tools=SERVICES.tools[:1], rules=SERVICES.rules),
        Services(template=SERVICES.template, tenant_id="acme", tools=SERVICES.tools, rules=()),
    ],
    ids=["kernel", "tenant", "tools", "rules"],
)
def test_a_change_in_the_stable_strata_moves_the_hash(other):
    assert (
        prompt(Task(), services=other).overrides["system_prompt_hash"] != prompt(Task()).overrides["system_prompt_hash"]
    )


def test_another_hash_seed_gives_the_same_bytes():
    program = (
        "from wakeful.assembly.stratified import *; from wakeful.assembly.template import Template\n"
        "from wakeful.needs import ToolSpec\n"
        "s = Services(template=Template(preferences=('b','a','c')), tenant_id='t', preferences=('x','y','z'),\n"
        "             tools=tuple(ToolSpec(n) for n in 'qwertz'))\n"
        "print(render_prompt(s, Task(), budget=999, memory_least=0, memory_most=9, tokens=len).overrides)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


@given(
    memory=st.lists(st.text(storable, max_size=400), max_size=12),
    budget=st.integers(0, 900),
    most=st.integers(0, 900),
)
def test_a_prompt_is_never_over_its_budget_and_shows_whole_lines(memory, budget, most):
    hydrated = hydrate_hits([Hit(text, i) for i, text in enumerate(memory)], budget=most, tokens=tokens)
    assert tokens(hydrated.context) <= most
    made = prompt(Task(memory_context=hydrated.context, prospective="- call Bo"), budget=budget)
    assert tokens(made.text) <= budget
    lines = unwrap(hydrated.context)
    shown = shown_lines(made, "memory")
    assert set(shown) <= set(lines)
    assert all(line in made.text for line in shown)
    report = next(section for section in made.sections if section.name == "memory")
    assert len(report.shown) + len(report.left_out) == len(lines)
    assert made.text.count("<memory ") == len(shown)


@given(sizes=st.lists(st.integers(1, 300), max_size=10), budget=st.integers(0, 500))
def test_a_piece_that_does_not_fit_is_passed_over_and_named(sizes, budget):
    pieces = tuple(Piece(text="x" * size, id=str(i), score=-i) for i, size in enumerate(sizes))
    made = allocate([Section(name="s", stratum="L2", pieces=pieces)], budget, len)
    report = made.reports[0]
    assert made.tokens <= budget
    assert {*report.shown, *(name for name, _ in report.left_out)} == {piece.id for piece in pieces}
    smallest = min(sizes, default=0)
    if sizes and smallest + 1 + len(JOINT) + 1 <= budget:
        assert report.shown


def test_memories_of_5000_60_30_10_tokens_fill_a_budget_of_150_without_the_first():
    hits = [Hit("word " * (size // 2), i) for i, size in enumerate((5_000, 60, 30, 10))]
    made = hydrate_hits(hits, budget=170, tokens=tokens)
    assert made.nodes[0].node.id == "n1"
    assert made.entries_count == len(made.nodes) == made.context.count("<memory ")
    assert made.left_out[0][0] == "n0"


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "langchain"])
def test_each_provider_gets_the_same_text_in_its_own_shape(provider):
    shaped = shape("kernel", "services", provider)
    assert "kernel" in json.dumps(shaped)
    assert "services" in json.dumps(shaped)


def test_anthropic_breakpoints_are_at_most_four_and_their_lifetimes_never_rise():
    blocks = shape("kernel", "services", "anthropic")
    lifetimes = [block["cache_control"].get("ttl", "5m") for block in blocks]
    assert lifetimes == ["1h", "5m"]


def test_a_template_refuses_unknown_keys_and_wrong_types():
    with pytest.raises(ConfigError, match="ruls"):
        Template.of({"ruls": ["x"]})
    with pytest.raises(ConfigError, match="rules"):
        Template.of({"rules": "one string"})
    with pytest.raises(ConfigError, match="TOML"):
        Template.from_toml("name = ")
    assert Template.from_toml('name = "Ada"\nrules = ["a"]').rules == ("a",)


@pytest.mark.parametrize("values", [{"budgt": 1}, {"budget": -1}, {"budget": True}, {"triage": "on"}])
def test_a_configuration_that_nothing_reads_is_refused(values):
    with pytest.raises(ConfigError):
        ContextConfig.of(values)
