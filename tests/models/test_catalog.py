"""The catalogue: what it knows, how ids are found, and that it never guesses."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import ConfigError
from wakeful.models.catalog import Catalog, ModelFacts, spellings
from wakeful.needs import Usage
from wakeful.pricing import ModelCatalog, Prices

CATALOG = Catalog.default()


def test_the_catalogue_is_a_model_catalog_with_a_source_and_a_day():
    assert isinstance(CATALOG, ModelCatalog)
    assert "LiteLLM" in CATALOG.source
    assert date.fromisoformat(CATALOG.date) >= date(2026, 1, 1)
    assert len(CATALOG.models) > 300
    assert Catalog.default() is CATALOG


@pytest.mark.parametrize(
    ("model", "window", "limit"),
    [
        ("claude-sonnet-4-5", 200_000, 64_000),
        ("claude-opus-5-5", 1_000_000, 128_000),
        ("claude-haiku-4-5", 200_000, 64_000),
        ("gpt-4o", 128_000, 16_384),
        ("gpt-4o-mini", 128_000, 16_384),
        ("gpt-4", 8_192, 4_096),
    ],
)
def test_well_known_models_have_their_window_and_output_limit(model, window, limit):
    assert CATALOG.context_window(model) == window
    assert CATALOG.output_limit(model) == limit
    assert CATALOG.prices(model) is not None


@pytest.mark.parametrize(
    ("spelling", "model"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5:beta", "claude-sonnet-4-5"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-haiku-4-5-latest", "claude-haiku-4-5"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("ft:gpt-4o-mini-2024-07-18:my-org::abc123", "gpt-4o-mini"),
        ("azure/gpt-4o", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_prefixes_dates_and_revisions_lead_to_the_same_model(spelling, model):
    assert CATALOG.facts(spelling) == CATALOG.facts(model)
    assert CATALOG.facts(spelling) is not None


@pytest.mark.parametrize(
    "model",
    [
        "",
        "gpt",
        "claude",
        "my-model",
        "gpt-4o-turbo-deluxe",
        "claude-sonnet",
        "llama3:8b",
        "gpt-4ooo",
        "/",
        "ft:",
        "a/b/",
    ],
)
def test_an_unknown_model_is_none_and_never_a_similar_one(model):
    assert CATALOG.context_window(model) is None
    assert CATALOG.output_limit(model) is None
    assert CATALOG.prices(model) is None


def test_a_snapshot_of_its_own_facts_wins_over_the_undated_model():
    assert CATALOG.output_limit("gpt-4o-2024-05-13") == 4_096
    assert CATALOG.output_limit("gpt-4o") == 16_384


def test_an_override_wins_and_leaves_the_rest_as_it_was():
    mine = CATALOG.with_model("gpt-4o", context_window=32_768)
    assert mine.context_window("gpt-4o") == 32_768
    assert mine.context_window("openai/gpt-4o-2024-08-06") == 32_768
    assert mine.prices("gpt-4o") == CATALOG.prices("gpt-4o")
    assert CATALOG.context_window("gpt-4o") == 128_000


def test_an_override_teaches_a_model_of_the_users_own():
    prices = Prices(input=0.0, output=0.0)
    mine = CATALOG.with_model("My/Local-Model", context_window=8_192, prices=prices)
    assert mine.facts("my/local-model") == ModelFacts(context_window=8_192, prices=prices)


@pytest.mark.parametrize("field", ["context_window", "output_limit"])
@pytest.mark.parametrize("value", [0, -1])
def test_an_impossible_override_is_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        CATALOG.with_model("m", **{field: value})


def test_every_row_makes_sense():
    for name, facts in CATALOG.models.items():
        assert name == name.lower()
        assert facts.context_window is not None
        assert facts.context_window >= 128
        assert facts.output_limit is None or facts.output_limit > 0
        if facts.prices is not None:
            assert 0 <= facts.prices.input < 1_000
            assert 0 <= facts.prices.output < 5_000
            assert 0 <= facts.prices.read_ratio <= 1.0, name


@given(st.text(max_size=40))
def test_any_text_can_be_looked_up(text):
    assert CATALOG.facts(text) is None or isinstance(CATALOG.facts(text), ModelFacts)
    forms = list(spellings(text))
    assert len(forms) == len(set(forms))


@given(st.sampled_from(sorted(CATALOG.models)))
def test_every_model_is_found_under_its_own_id(name):
    assert CATALOG.facts(name) is CATALOG.models[name]


def test_cost_adds_each_kind_of_token_at_its_price():
    prices = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=600_000, cache_write_tokens=100_000)
    assert prices.cost(usage) == pytest.approx(0.3 * 3 + 0.6 * 0.3 + 0.1 * 3.75 + 0.1 * 15)
    assert prices.read_ratio == pytest.approx(0.1)
    assert prices.write_ratio == pytest.approx(1.25)


def test_without_cache_prices_cached_tokens_cost_what_others_do():
    prices = Prices(input=2.0, output=8.0)
    assert prices.cost(Usage(input_tokens=1_000_000, cached_tokens=400_000)) == pytest.approx(2.0)
    assert prices.read_ratio == prices.write_ratio == 1.0


def test_the_snapshot_is_read_only_when_a_model_is_looked_up():
    code = (
        "import wakeful, wakeful.models.catalog as c, sys; "
        "assert c._snapshot.cache_info().currsize == 0; c.Catalog.default(); "
        "assert c._snapshot.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
