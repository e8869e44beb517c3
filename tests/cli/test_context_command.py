"""``wakeful context`` shows what a model would see, and where the first byte moved."""

from __future__ import annotations

import pytest


@pytest.fixture
def filled(wakeful, at):
    wakeful("remember", "Ana lives at Kungsgatan 12 in Gothenburg")
    wakeful("remember", "Ana only drinks decaf coffee")
    return wakeful


def test_the_strata_their_tokens_and_the_reasons_are_shown(filled):
    done = filled("context", "where does Ana live?", "--tool", "lookup=Find an order")
    assert done.code == 0
    for part in ("L0  kernel", "L1  tools", "L2  memory", "Kungsgatan 12", "tokens", "words of the query"):
        assert part in done.out


def test_the_json_is_whole(filled):
    data = filled("context", "where does Ana live?", "--json").json
    assert data["metadata"]["entries_count"] == len(data["hits"]) == data["system_prompt"].count("<memory ")
    assert data["system_prompt"].endswith(data["turn_block"])
    assert len(data["system_blocks"]) == 2


def test_the_diff_is_with_the_turn_before_whether_or_not_that_one_was_compared(filled):
    filled("context", "where does Ana live?")
    done = filled("context", "what does Ana drink?", "--diff")
    assert "behind the last breakpoint" in done.out
    assert "  was: " in done.out
    assert "  is:  " in done.out


def test_the_diff_counts_bytes_in_any_script(filled, tmp_path):
    (tmp_path / "t.toml").write_text('name = "Åsa, 受付"\n', encoding="utf-8")
    filled("context", "where?", "--template", "t.toml")
    data = filled("context", "what does Ana drink?", "--template", "t.toml", "--diff", "--json").json
    stable = data["system_prompt"].removesuffix(data["turn_block"]).encode()
    assert data["stable_bytes"] == len(stable)
    assert data["first_byte_moved"] >= len(stable)


def test_the_diff_shows_that_only_the_turn_moved(filled):
    assert filled("context", "where does Ana live?", "--diff", "--json").json["first_byte_moved"] is None
    data = filled("context", "what does Ana drink?", "--diff", "--json").json
    assert data["first_byte_moved"] >= data["stable_bytes"]


def test_the_diff_shows_a_change_of_the_rules(filled, tmp_path):
    filled("context", "where?", "--diff")
    (tmp_path / "t.toml").write_text('name = "Ada"\n')
    done = filled("context", "where?", "--diff", "--template", "t.toml")
    assert "the cache is lost" in done.out


def test_the_short_prompt_hydrates_nothing(filled):
    data = filled("context", "where does Ana live?", "--strategy", "jit", "--json").json
    assert "Kungsgatan" not in data["system_prompt"]
    assert "hydrate_context" in data["system_prompt"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tool", "lookup"],
        ["--template", "none.toml"],
        ["--budget", "-1"],
        ["--strategy", "magic"],
        ["--db", "none.db"],
    ],
)
def test_a_wrong_option_is_one_clear_line(filled, arguments):
    done = filled("context", "x", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert "wakeful: " in done.err


def test_a_template_with_an_unknown_key_is_refused(filled, tmp_path):
    (tmp_path / "t.toml").write_text('nmae = "Ada"\n')
    done = filled("context", "x", "--template", "t.toml")
    assert done.code == 2
    assert "nmae" in done.err


def test_a_look_at_the_context_claims_no_reminder(wakeful, at):
    wakeful("remind", "Call the bank", "--at", "2020-01-01T09:00:00+00:00")
    for _ in range(2):
        assert "Call the bank" in wakeful("context", "hello").out
    assert "Call the bank" in wakeful("due").out
