"""Faults of accounting that begin with the model: a wrong window, a missing usage, an overflow that no one recognises."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from wakeful import compact
from wakeful.errors import ConfigError
from wakeful.models.anthropic import read_usage
from wakeful.models.catalog import Catalog
from wakeful.models.openai import OpenAIChatModel, read_chat_usage, read_response_usage
from wakeful.needs import ChatRequest, Done, Usage
from wakeful.testing import ProviderServer


def test_a_declared_window_wins_over_the_catalogues():
    catalog = Catalog.default().with_model("claude-opus-5-5", context_window=32_768)
    assert Catalog.default().context_window("claude-opus-5-5") == 1_000_000
    for spelling in ("claude-opus-5-5", "anthropic/claude-opus-5-5", "us.anthropic.claude-opus-5-5-v1:0"):
        assert catalog.context_window(spelling) == 32_768


@pytest.mark.parametrize("model", ["my-finetune", "qwen2.5:14b", "llama3.1:8b-instruct-q4_K_M", "gpt-99"])
def test_an_unknown_models_window_is_not_known_instead_of_a_default(model):
    assert Catalog.default().context_window(model) is None


def test_an_unknown_model_without_a_window_is_an_error_and_with_one_is_not():
    messages = [{"role": "user", "content": "word " * 2_000}, {"role": "assistant", "content": "Yes."}]
    with pytest.raises(ConfigError, match="my-finetune"):
        compact(messages, model="my-finetune")
    assert not compact(messages, model="my-finetune", window=50_000).meta.compacted
    mine = Catalog.default().with_model("my-finetune", context_window=50_000)
    assert not compact(messages, model="my-finetune", catalog=mine).meta.compacted


def test_an_explicit_window_wins_over_the_catalogue():
    talk = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 400} for i in range(40)]
    assert not compact(talk, model="claude-opus-5-5").meta.compacted
    assert compact(talk, model="claude-opus-5-5", window=8_000, reserve=500).meta.compacted


def test_two_models_of_one_family_keep_their_own_windows():
    catalog = Catalog.default()
    assert catalog.context_window("claude-haiku-4-5") == 200_000
    assert catalog.context_window("claude-haiku-5-5") == 1_000_000
    assert catalog.context_window("gpt-4") == 8_192
    assert catalog.context_window("gpt-4-turbo") == 128_000


def test_a_stream_without_usage_says_that_it_has_none_and_not_that_it_was_free():
    with ProviderServer(lambda _: "hello there", unsupported=["stream_options"]) as server:
        http = openai.DefaultHttpxClient(verify=False)
        with openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0, http_client=http) as client:
            model = OpenAIChatModel("local", client=client)
            done = list(model.stream(ChatRequest(prompt="Go.")))[-1]
    assert isinstance(done, Done)
    assert done.reply.text == "hello there"
    assert done.reply.usage is None


@pytest.mark.parametrize(
    ("read", "data", "expected"),
    [
        (
            read_usage,
            {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 5},
            Usage(input_tokens=1_000, output_tokens=5, cached_tokens=900, cache_write_tokens=90),
        ),
        (
            read_usage,
            {"input_tokens": 10, "cache_read_input_tokens": None, "output_tokens": 5},
            Usage(input_tokens=10, output_tokens=5),
        ),
        (
            read_chat_usage,
            {"prompt_tokens": 1_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 900}},
            Usage(input_tokens=1_000, output_tokens=5, cached_tokens=900),
        ),
        (
            read_chat_usage,
            {"prompt_tokens": 7, "completion_tokens": 1, "prompt_tokens_details": None},
            Usage(input_tokens=7, output_tokens=1),
        ),
        (
            read_response_usage,
            {"input_tokens": 1_000, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 900}},
            Usage(input_tokens=1_000, output_tokens=5, cached_tokens=900),
        ),
        (read_usage, None, None),
        (read_chat_usage, {}, None),
        (read_response_usage, None, None),
    ],
)
def test_input_tokens_always_hold_the_cached_ones(read: Any, data: Any, expected: Usage | None):
    assert read(data) == expected
