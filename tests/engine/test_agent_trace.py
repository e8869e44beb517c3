"""Spans of a turn, and nothing at all without a tracer."""

import pytest

from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.trace import NO_SPAN, turn_span
from wakeful.errors import AuthError
from wakeful.needs import ToolCall
from wakeful.testing import Say, ScriptedModel

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory_export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


@pytest.fixture
def spans():
    exporter = memory_export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    yield provider.get_tracer("test"), exporter
    provider.shutdown()


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_a_turn_is_a_tree_of_spans_by_the_conventions(spans):
    tracer, exporter = spans
    script = [Say(calls=(ToolCall("c1", "add", {"a": 1, "b": 2}),)), "three"]
    Agent(ScriptedModel(script), tools=[add], tracer=tracer, name="helper").run("x", session="s1")
    finished = exporter.get_finished_spans()
    assert [span.name for span in finished] == [
        "chat scripted",
        "execute_tool add",
        "chat scripted",
        "invoke_agent helper",
    ]
    turn = finished[-1]
    assert all(span.parent.span_id == turn.context.span_id for span in finished[:-1])
    assert turn.attributes["gen_ai.conversation.id"] == "s1"
    assert turn.attributes["gen_ai.usage.output_tokens"] >= 1
    chat = finished[0].attributes
    assert (chat["gen_ai.operation.name"], chat["gen_ai.request.model"]) == ("chat", "scripted")
    assert chat["gen_ai.usage.input_tokens"] >= 1
    assert finished[1].attributes["gen_ai.tool.call.id"] == "c1"
    assert not any("three" in str(value) for span in finished for value in span.attributes.values())


def test_internal_calls_and_compactions_are_tagged(spans):
    tracer, exporter = spans
    summarizer = ScriptedModel(lambda r: "A record of the turns: numbers 0, 1, 2, 3 and words.", name="small")
    made = Agent(
        ScriptedModel(lambda request: "words and numbers " * 60),
        compactor=WindowManager("summarize", keep_recent=1, summarizer=summarizer, reserve=200),
        context_window=2000,
        tracer=tracer,
    )
    for turn in range(8):
        made.run(f"turn {turn}")
    finished = exporter.get_finished_spans()
    internal = [span for span in finished if span.attributes.get("wakeful.role") == "summarizer"]
    assert internal
    assert any(span.attributes.get("wakeful.compacted") for span in finished if span.name == "wakeful.compact")


def test_a_failure_marks_its_spans(spans):
    tracer, exporter = spans
    with pytest.raises(AuthError):
        Agent(ScriptedModel([AuthError("no")]), tracer=tracer).run("x")
    chat, turn = exporter.get_finished_spans()
    assert chat.attributes["error.type"] == turn.attributes["error.type"] == "auth"
    assert not turn.status.is_ok


def test_without_a_tracer_nothing_is_made(spans):
    _, exporter = spans
    assert turn_span(False, "agent", {}) is NO_SPAN
    Agent(ScriptedModel(["x"]), tracer=False).run("x")
    assert exporter.get_finished_spans() == ()
