"""What provider errors mean, and when a call is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import (
    AuthError,
    ConfigError,
    ContextOverflow,
    InvalidRequest,
    ModelError,
    Overloaded,
    RateLimited,
    TransportError,
)
from wakeful.models.retry import NO_RETRY, RetryPolicy, classify, make_error, retry_after, retrying, wrap
from wakeful.needs import Ask, ChatReply, ChatRequest, Sleep

OVERFLOWS = [
    "prompt is too long: 209000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
    "`max_tokens` and try again",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please reduce "
    "the length of the messages.",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "Requested tokens (9000) exceed context window of 8192",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "Request exceeds the maximum size",
]


@pytest.mark.parametrize("message", OVERFLOWS)
def test_every_wording_of_does_not_fit_is_an_overflow(message):
    assert classify(400, message=message) is ContextOverflow
    assert classify(None, message=message) is ContextOverflow
    assert classify(500, message=message) is ContextOverflow


@pytest.mark.parametrize(
    "message",
    [
        "messages: final assistant content cannot end with trailing whitespace",
        "tool_use ids were found without tool_result blocks immediately after",
        "max_tokens: 999999 > 64000, which is the maximum allowed number of output tokens",
        "temperature: range 0..1",
        "Unsupported parameter: 'context' is not supported with this model.",
    ],
)
def test_other_refusals_are_no_overflow(message):
    assert classify(400, message=message) is InvalidRequest


@pytest.mark.parametrize(
    ("status", "code", "kind", "error"),
    [
        (400, "", "invalid_request_error", InvalidRequest),
        (400, "context_length_exceeded", "invalid_request_error", ContextOverflow),
        (401, "", "authentication_error", AuthError),
        (401, "invalid_api_key", "invalid_request_error", AuthError),
        (403, "", "permission_error", AuthError),
        (404, "", "not_found_error", InvalidRequest),
        (408, "", "", TransportError),
        (409, "", "", Overloaded),
        (413, "", "request_too_large", ContextOverflow),
        (413, "rate_limit_exceeded", "tokens", RateLimited),
        (422, "", "", InvalidRequest),
        (429, "", "rate_limit_error", RateLimited),
        (429, "", "overloaded_error", RateLimited),
        (500, "", "api_error", Overloaded),
        (502, "", "", Overloaded),
        (503, "", "", Overloaded),
        (504, "", "timeout_error", TransportError),
        (529, "", "overloaded_error", Overloaded),
        (None, "", "overloaded_error", Overloaded),
        (None, "", "rate_limit_error", RateLimited),
        (None, "", "", ModelError),
        (200, "", "", ModelError),
    ],
)
def test_status_and_code_decide_together(status, code, kind, error):
    assert classify(status, code=code, kind=kind) is error


def test_a_rate_limit_about_tokens_is_no_overflow():
    assert classify(429, message="Rate limit reached: too many tokens per minute") is RateLimited


def test_a_spent_quota_is_not_worth_a_retry():
    assert make_error(429, code="insufficient_quota").retryable is False
    assert make_error(429).retryable is True


class Foreign(Exception):
    """What an SDK's exception looks like."""

    def __init__(self, message: str = "no", **attributes: Any) -> None:
        super().__init__(message)
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Foreign(status_code=429, body={"type": "error", "error": {"type": "rate_limit_error"}}), RateLimited),
        (Foreign(status_code=200, body={"error": {"type": "overloaded_error"}}), Overloaded),
        (Foreign(code="context_length_exceeded"), ContextOverflow),
        (Foreign("prompt is too long: 5 tokens > 4 maximum"), ContextOverflow),
        (Foreign(response=SimpleNamespace(status_code=503, headers={})), Overloaded),
        (Foreign("Could not resolve authentication method."), AuthError),
        (TimeoutError(), TransportError),
        (ConnectionResetError(), TransportError),
        (type("ReadTimeout", (Exception,), {})("slow"), TransportError),
        (type("RemoteProtocolError", (Exception,), {})("peer closed connection"), TransportError),
        (KeyError("x"), ModelError),
    ],
)
def test_a_foreign_exception_becomes_the_error_that_says_what_to_do(error, expected):
    wrapped = wrap(error)
    assert type(wrapped) is expected
    assert str(wrapped)


def test_our_own_errors_are_not_wrapped_again():
    error = RateLimited("slow down", retry_after=3)
    assert wrap(error) is error


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = "Thu, 01 Jan 2026 00:01:30 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": LATER}, 90.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_read(headers, seconds):
    assert retry_after(headers, now=NOW) == seconds


def test_a_date_is_measured_from_the_replys_own_clock():
    assert retry_after({"retry-after": LATER, "date": "Thu, 01 Jan 2026 00:01:00 GMT"}) == 30.0
    assert retry_after({"retry-after": LATER}) is None
    assert retry_after({"retry-after": LATER}, now=NOW + timedelta(hours=1)) == 0.0


@given(
    attempts=st.integers(1, 8),
    base=st.floats(0, 2),
    jitter=st.floats(0, 1),
    asked=st.one_of(st.none(), st.floats(0, 100)),
    attempt=st.integers(1, 10),
)
def test_a_wait_never_undercuts_the_provider_and_never_exceeds_the_cap(attempts, base, jitter, asked, attempt):
    policy = RetryPolicy(attempts=attempts, base=base, cap=20.0)
    wait = policy.delay(RateLimited(retry_after=asked), attempt, jitter)
    if attempt >= attempts or (asked is not None and asked > 20.0):
        assert wait is None
    else:
        assert wait is not None
        assert (asked or 0.0) <= wait <= 20.0


@pytest.mark.parametrize("error", [AuthError(), InvalidRequest(), ContextOverflow(), ModelError()])
def test_what_waiting_does_not_mend_is_not_tried_again(error):
    assert RetryPolicy().delay(error, 1) is None


@pytest.mark.parametrize("options", [{"attempts": 0}, {"base": -1.0}, {"base": 5.0, "cap": 1.0}])
def test_an_impossible_policy_is_refused(options):
    with pytest.raises(ConfigError):
        RetryPolicy(**options)


def test_the_flow_asks_waits_and_asks_again():
    request = ChatRequest(prompt="x")
    flow = retrying(request, "summarizer", policy=RetryPolicy(attempts=3, base=1.0))
    assert next(flow) == Ask(request, "summarizer")
    assert flow.throw(Overloaded()) == Sleep(1.0)
    assert flow.send(None) == Ask(request, "summarizer")
    assert flow.throw(RateLimited(retry_after=5)) == Sleep(5)
    assert flow.send(None) == Ask(request, "summarizer")
    with pytest.raises(StopIteration) as stop:
        flow.send(ChatReply(text="done"))
    assert stop.value.value.text == "done"


def test_the_flow_gives_the_last_failure_up():
    flow = retrying(ChatRequest(prompt="x"), policy=NO_RETRY)
    next(flow)
    error = Overloaded("busy")
    with pytest.raises(Overloaded) as caught:
        flow.throw(error)
    assert caught.value is error
