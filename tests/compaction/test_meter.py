"""The meter: estimates by script and family, and what usage teaches it."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.compaction.meter import CLAUDE_NEW, UNKNOWN, Meter, as_meter, estimator, family_of
from wakeful.dialects.protocol import TextKind
from wakeful.errors import ConfigError

ENGLISH = "The migration ran for two hours before it failed on a missing index, so we rolled it back and added it. "
JSON = '{"order_id": "A-10293", "amount": 129.90, "items": [{"sku": "TX-4411", "count": 2}], "paid": true}'
CHINESE = "我们需要在下周三之前把订单发到阿姆斯特丹的仓库，请确认库存是否足够。"
JAPANESE = "来週の水曜日までに注文を倉庫に発送する必要があります。在庫を確認してください。"
KOREAN = "다음 주 수요일까지 암스테르담 창고로 주문을 보내야 합니다. 재고를 확인해 주세요."
RUSSIAN = "Нам нужно отправить заказ на склад до следующей среды; пожалуйста, проверьте наличие."
GERMAN = "Wir müssen die Bestellung bis nächsten Mittwoch schicken; bitte prüfen Sie die Verfügbarkeit."
HEX = "".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(4))
BASE64 = base64.b64encode(b"".join(hashlib.sha256(bytes([i])).digest() for i in range(12))).decode()


@pytest.mark.parametrize(
    ("text", "kind", "low", "high"),
    [
        (ENGLISH, "text", 3.4, 5.2),
        (JSON, "json", 1.9, 3.0),
        (CHINESE, "text", 1.1, 1.7),
        (JAPANESE, "text", 1.1, 1.8),
        (KOREAN, "text", 1.2, 2.2),
        (RUSSIAN, "text", 2.4, 4.4),
        (GERMAN, "text", 3.2, 5.6),
        (HEX, "text", 1.3, 1.9),
        (BASE64, "text", 1.2, 1.7),
    ],
)
def test_characters_per_token_follow_script_and_kind(text: str, kind: TextKind, low: float, high: float) -> None:
    assert low <= len(text) / as_meter(model="gpt-4o").count(text, kind) <= high


def test_four_thousand_asian_characters_are_not_a_thousand_tokens() -> None:
    assert as_meter(model="gpt-4o").count("订" * 4_000, "text") >= 2_400


@pytest.mark.parametrize(
    ("model", "text_factor"),
    [
        ("gpt-4o-mini", 1.0),
        ("openai/gpt-5.1", 1.0),
        ("o3", 1.0),
        ("gpt-4-turbo", 1.02),
        ("claude-sonnet-4-5-20250929", 1.25),
        ("anthropic/claude-3-5-haiku-latest", 1.25),
        ("claude-sonnet-4-20250514", 1.25),
        ("claude-opus-4-7", CLAUDE_NEW.text),
        ("us.anthropic.claude-opus-4-8-v1:0", CLAUDE_NEW.text),
        ("claude-sonnet-5", CLAUDE_NEW.text),
        ("qwen3-coder", 1.08),
        ("meta-llama/Llama-3.3-70B", 1.02),
        ("some-model", UNKNOWN.text),
        ("proto1-x", UNKNOWN.text),
        (None, UNKNOWN.text),
    ],
)
def test_a_models_family_is_told_by_its_id(model: str | None, text_factor: float) -> None:
    assert family_of(model).text == text_factor


@given(st.text(max_size=200), st.sampled_from(["text", "json"]))
def test_a_text_with_something_in_it_is_never_free_and_never_absurd(text: str, kind: TextKind) -> None:
    tokens = estimator()(text, kind)
    assert tokens == 0 if not text else 1 <= tokens <= 3 * len(text) + 1


@given(st.text(min_size=1, max_size=80), st.integers(2, 30))
def test_cost_is_linear_in_repetition(text: str, times: int) -> None:
    count = estimator()
    assert count(text * times, "text") <= times * (count(text, "text") + 1) * 2.2


def test_lone_surrogates_are_counted() -> None:
    assert as_meter().count("a\ud800b", "text") >= 1


def test_a_users_function_is_used_exactly_and_never_corrected() -> None:
    meter = as_meter(lambda text: len(text) // 4)
    assert meter.count("x" * 4_001, "json") == 1_000
    assert meter.observe(1_000, 4_000) is meter
    assert meter.scaled(1_000) == 1_000


def test_usage_corrects_sums_but_never_what_was_measured() -> None:
    meter = as_meter(model="gpt-4o")
    before = meter.count(ENGLISH, "text")
    learnt = meter.observe(10_000, 15_000)
    assert learnt.count(ENGLISH, "text") == before
    assert learnt.scaled(10_000) == 15_000
    assert learnt.unscaled(15_000) == 10_000


@pytest.mark.parametrize(
    ("estimated", "real", "stale"),
    [(10_000, 95_000, True), (10_000, 0, False), (10_000, -5, False), (0, 100, False), (20, 90, False)],
    ids=["from before a compaction", "missing", "negative", "nothing estimated", "too small to tell"],
)
def test_usage_that_tells_nothing_is_ignored(estimated: int, real: int, stale: bool) -> None:
    meter = as_meter()
    assert meter.observe(estimated, real, stale=stale) is meter


@given(st.lists(st.tuples(st.integers(200, 10**6), st.integers(1, 10**7)), max_size=12))
def test_the_correction_stays_within_a_factor_of_four(reports: list[tuple[int, int]]) -> None:
    meter = as_meter()
    for estimated, real in reports:
        meter = meter.observe(estimated, real)
    assert 0.25 <= meter.factor <= 4.0


def test_repeated_usage_settles_on_the_real_ratio() -> None:
    meter = as_meter()
    for _ in range(12):
        meter = meter.observe(1_000, 1_600)
    assert meter.factor == pytest.approx(1.6, abs=0.01)


def test_unscaled_never_promises_more_than_there_is() -> None:
    meter = Meter(estimator(), factor=1.37)
    assert all(meter.scaled(meter.unscaled(room)) <= room + 1 for room in range(1, 5_000, 37))


@pytest.mark.parametrize("value", [3, "tokens", [len]])
def test_what_is_no_meter_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="function from text to tokens"):
        as_meter(value)
