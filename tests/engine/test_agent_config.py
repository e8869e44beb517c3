"""What of an agent can be stored, and how tools are described."""

import enum
import json
from typing import Annotated, Literal, TypedDict

import pytest

from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.agent_config import AgentConfig
from wakeful.engine.hooks import register_policy
from wakeful.engine.tools import Tool, check, make_tools, schema_of, tool
from wakeful.errors import ConfigError
from wakeful.needs import ToolSpec
from wakeful.testing import ScriptedModel

FULL = {
    "name": "helper",
    "model": "anthropic/claude-sonnet-4-5",
    "system": "Be kind.",
    "scope": "org:acme/user:ana",
    "max_iterations": 7,
    "budget": 1000,
    "tool_timeout": None,
    "policies": [("deny_tools", {"tools": ["rm"]}), "approve_tools"],
    "compactor": ("window_manager", {"strategy": "oldest_first", "keep_recent": 2}),
    "context_window": 1000,
}


def test_a_configuration_comes_back_from_plain_data():
    config = AgentConfig.of("Agent", FULL)
    data = json.loads(json.dumps(config.dump()))
    again = AgentConfig.rebuild(data)
    assert again.dump() == data
    assert [type(each).__name__ for each in again.make_policies()] == ["DenyTools", "ApproveTools"]
    made = Agent(ScriptedModel(["x"]), config=again)
    assert isinstance(made.parts.compactor, WindowManager)
    assert (made.parts.limits.iterations, made.parts.window) == (7, 1000)
    assert made.run("hi").text == "x"


WRONG = [
    ({"colour": 1}, "colour"),
    ({"max_iterations": 0}, "max_iterations"),
    ({"max_iterations": True}, "max_iterations"),
    ({"retries": -1}, "retries"),
    ({"parallel": 0}, "parallel"),
    ({"budget": 0}, "budget"),
    ({"temperature": "hot"}, "temperature"),
    ({"tool_timeout": -1}, "tool_timeout"),
    ({"backoff": None}, "backoff"),
    ({"thinking": "yes"}, "thinking"),
    ({"system": 3}, "system"),
    ({"name": ""}, "name"),
    ({"policies": [("nobody", {})]}, "nobody"),
    ({"policies": [("deny_tools", {"tools": "rm"})]}, "list of tool names"),
    ({"policies": [("deny_tools", {"tool": []})]}, "no option tool"),
    ({"policies": [3]}, "registered name"),
    ({"compactor": ("window_manager", {"keep_recent": -1})}, "keep_recent"),
    ({"compactor": ("window_manager", {"wat": 1})}, "wat"),
    ({"compactor": "squeezer"}, "squeezer"),
    ({"scope": "no scope"}, "kind:id"),
]


@pytest.mark.parametrize(("values", "says"), WRONG)
def test_a_bad_value_is_refused_where_it_is_made_and_where_it_is_read_back(values, says):
    with pytest.raises(ValueError, match=says):
        Agent(ScriptedModel(["x"]), **values)
    data = AgentConfig().dump() | json.loads(json.dumps(values))
    with pytest.raises(ValueError, match=says):
        AgentConfig.rebuild(data)


def test_the_message_names_the_function_that_was_called():
    with pytest.raises(ConfigError, match=r"^Agent\b"):
        Agent(ScriptedModel(["x"]), max_iterations=0)
    with pytest.raises(ConfigError, match=r"^AgentConfig\.rebuild\b"):
        AgentConfig.rebuild(AgentConfig().dump() | {"max_iterations": 0})


@pytest.mark.parametrize("name", ["api_key", "password", "client_secret", "Authorization"])
def test_a_credential_is_refused(name):
    class Guard:
        def __init__(self, **opts):
            self.opts = opts

        @staticmethod
        def validate_opts(opts):
            """Take anything."""

        def before_tool(self, call, info):
            return None

    register_policy("guard", Guard)
    with pytest.raises(ConfigError, match="credential"):
        AgentConfig(policies=(("guard", {"nested": {name: "x"}}),))


def test_another_format_is_refused():
    for data in ({}, {"format": 2}, [], None):
        with pytest.raises(ConfigError, match="format"):
            AgentConfig.rebuild(data)


def test_config_and_single_options_do_not_mix():
    with pytest.raises(ConfigError, match="not both"):
        Agent(ScriptedModel(["x"]), config=AgentConfig(), retries=1)


# --- tools -----------------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(TypedDict):
    x: int
    y: float


SCHEMAS = [
    (str, {"type": "string"}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (list[float], {"type": "array", "items": {"type": "number"}}),
    (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
    (Literal["a", "b"], {"enum": ["a", "b"]}),
    (Colour, {"enum": ["red", "blue"]}),
    (Annotated[str, "the name"], {"type": "string", "description": "the name"}),
    (
        Point,
        {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
            "required": ["x", "y"],
            "additionalProperties": False,
        },
    ),
]


@pytest.mark.parametrize(("hint", "schema"), SCHEMAS, ids=str)
def test_annotations_become_schemas(hint, schema):
    assert schema_of(hint, "here") == schema


def test_a_tool_is_described_by_its_signature_and_docstring():
    @tool(approve=True)
    def send(to: str, text: str = "hi", urgent: bool = False) -> str:
        """Send a message.

        It arrives at once.

        Args:
            to: who gets it,
                by name
            text (str): what to say
        """
        return text

    assert send.spec.description == "Send a message.\n\nIt arrives at once."
    assert send.spec.parameters == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "who gets it, by name"},
            "text": {"type": "string", "description": "what to say", "default": "hi"},
            "urgent": {"type": "boolean", "default": False},
        },
        "required": ["to"],
        "additionalProperties": False,
    }
    assert send.approve


CHECKS = [
    ({"type": "integer"}, True, "must be integer"),
    ({"type": "number"}, 3, ""),
    ({"type": "array", "items": {"type": "string"}}, ["a", 1], r"\[1\] must be string"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, "none of the allowed"),
    ({"enum": ["a"]}, "b", "one of"),
    ({"type": "object", "properties": {"p": {"type": "object", "required": ["q"]}}}, {"p": {}}, "q is missing"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"z": "x"}, "z must be integer"),
]


@pytest.mark.parametrize(("schema", "value", "says"), CHECKS)
def test_arguments_are_checked_in_words(schema, value, says):
    import re

    found = check(schema, value)
    assert bool(found) == bool(says)
    assert re.search(says, "; ".join(found))


def test_what_can_not_be_a_tool_is_refused():
    def untyped(a):
        """No annotation."""

    def odd(a: complex):
        """No schema."""

    def many(*names: str):
        """Star arguments."""

    def fine(a: int) -> int:
        """Fine."""
        return a

    for wrong in ([untyped], [odd], [many], [3], [fine, fine], [(ToolSpec("no spaces"), fine)], [(ToolSpec("x"), 3)]):
        with pytest.raises(ConfigError):
            make_tools(wrong)
    spec = ToolSpec("own", "Mine.", {"type": "object", "properties": {}})
    made = make_tools([(spec, fine), tool(fine, name="other"), Tool(spec=ToolSpec("third"), function=fine)])
    assert list(made) == ["own", "other", "third"]
