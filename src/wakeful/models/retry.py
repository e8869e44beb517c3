"""What a failed model call means, and when to try again.

Facts about providers' errors are tables; ``wrap`` turns any exception of a foreign client into the one ``ModelError``
that says what to do. Nothing here sleeps: ``delay`` computes seconds and ``retrying`` is a flow that yields its waits.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
from wakeful.needs import Ask, ChatReply, ChatRequest, Flow, Sleep

OVERFLOW = re.compile(
    r"prompt is too long"
    r"|exceeds? (the |its |this )?(model'?s? |maximum |available )*context"
    r"|context[ _](length|window|size)[ _](is |was )?exceed"
    r"|maximum context length"
    r"|exceeds? the context (window|limit|length|size)"
    r"|input tokens exceed the configured limit"
    r"|input (is )?too long"
    r"|exceeds the maximum number of tokens"
    r"|exceed_context_size"
    r"|exceed context (window|limit|size)"
    r"|reduce the length of (the |your )?(messages|prompt|input)"
    r"|(request|payload) (exceeds the maximum size|too large)"
    r"|too many (input )?tokens in",
    re.IGNORECASE,
)
"""Wordings of "does not fit".

Source: the error texts of Anthropic, OpenAI, Gemini, Bedrock, vLLM, llama.cpp and llama-cpp-python.
"""

BY_CODE: dict[str, type[ModelError]] = {
    "authentication_error": AuthError,
    "permission_error": AuthError,
    "invalid_api_key": AuthError,
    "billing_error": AuthError,
    "rate_limit_error": RateLimited,
    "rate_limit_exceeded": RateLimited,
    "insufficient_quota": RateLimited,
    "overloaded_error": Overloaded,
    "api_error": Overloaded,
    "server_error": Overloaded,
    "internal_server_error": Overloaded,
    "timeout_error": TransportError,
    "context_length_exceeded": ContextOverflow,
    "exceed_context_size_error": ContextOverflow,
    "string_above_max_length": ContextOverflow,
    "request_too_large": ContextOverflow,
}
"""Error types and codes that mean the same whatever the status.

Source: platform.claude.com/docs/en/api/errors, platform.openai.com/docs/guides/error-codes, llama.cpp's server.
"""

BY_STATUS: dict[int, type[ModelError]] = {
    401: AuthError,
    402: AuthError,
    403: AuthError,
    408: TransportError,
    409: Overloaded,
    413: ContextOverflow,
    429: RateLimited,
    529: Overloaded,
}
"""What a status means when its code says nothing. Other 4xx: ``InvalidRequest``; other 5xx: ``Overloaded``."""

HOPELESS = frozenset({"insufficient_quota", "billing_error"})
"""Codes of a rate limit that waiting does not lift."""


def classify(status: int | None, *, code: str = "", kind: str = "", message: str = "") -> type[ModelError]:
    """Say which error this is, from the HTTP status (None: no reply came) and the error's code, type and text."""
    for name in (code, kind):
        found = BY_CODE.get(name)
        if found is not None and not (found is Overloaded and status in BY_STATUS):
            return found
    found = BY_STATUS.get(status) if status is not None else None
    if found is not None:
        return found
    if OVERFLOW.search(message):
        return ContextOverflow
    if status is None:
        return ModelError
    if 400 <= status < 500:
        return InvalidRequest
    return Overloaded if status >= 500 else ModelError


def make_error(
    status: int | None,
    *,
    code: str = "",
    kind: str = "",
    message: str = "",
    retry_after: float | None = None,
) -> ModelError:
    """Make the error that ``classify`` names, with what the provider said."""
    error = classify(status, code=code, kind=kind, message=message)(message or None, retry_after=retry_after)
    if code in HOPELESS or kind in HOPELESS:
        error.retryable = False
    return error


def wrap(error: BaseException) -> ModelError:
    """Turn an exception of a provider's client into a ``ModelError``; one that is already is given back as it is.

    Works on what such exceptions carry (``status_code``, ``body``, ``response``), so it needs none of the SDKs.
    """
    if isinstance(error, ModelError):
        return error
    name = type(error).__name__
    message = str(getattr(error, "message", "") or error) or name
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    if status is None:
        status = getattr(response, "status_code", None)
    code, kind = _codes(getattr(error, "body", None))
    code = code or str(getattr(error, "code", None) or "")
    headers = getattr(response, "headers", None)
    if isinstance(status, int) and not isinstance(status, bool) and "Validation" not in name:
        return make_error(
            status if status >= 400 else None,
            code=code,
            kind=kind,
            message=message,
            retry_after=retry_after(headers) if isinstance(headers, Mapping) else None,
        )
    if code or kind:
        return make_error(None, code=code, kind=kind, message=message)
    if isinstance(error, OSError | EOFError | TimeoutError | json.JSONDecodeError | UnicodeDecodeError) or re.search(
        r"Timeout|Connect|Protocol|Network|ReadError|WriteError|Closed|Validation|Decod", name
    ):
        return TransportError(f"{name}: {message}")
    if re.search(r"Credential|Authenticat", name) or re.search(
        r"authentication method|api[_ ]key|credentials", message, re.IGNORECASE
    ):
        return AuthError(message)
    if OVERFLOW.search(message):
        return ContextOverflow(message)
    return ModelError(f"{name}: {message}")


def _codes(body: Any) -> tuple[str, str]:
    """Give code and type of an error body, nested under ``error`` or not."""
    if isinstance(body, Mapping):
        inner = body.get("error")
        if isinstance(inner, Mapping):
            body = inner
        return str(body.get("code") or ""), str(body.get("type") or "")
    return "", ""


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Read how many seconds to wait from reply headers; None when they do not say.

    ``now`` is needed only for the date form. Source: RFC 9110 section 10.2.3; ``retry-after-ms`` is sent by Azure and
    OpenAI.
    """
    milliseconds = headers.get("retry-after-ms")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
    except ValueError:
        pass
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = now if now is not None else _sent(headers)
    return max(0.0, (moment - since).total_seconds()) if since is not None else None


def _sent(headers: Mapping[str, str]) -> datetime | None:
    try:
        sent = email.utils.parsedate_to_datetime(headers.get("date") or "")
    except (TypeError, ValueError):
        return None
    return sent if sent.tzinfo is not None else sent.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often to try again, and how long to wait in between."""

    attempts: int = 4
    """Calls in all, the first one included."""
    base: float = 0.5
    """Seconds before the first retry; doubled for each one after it."""
    cap: float = 30.0
    """Longest wait, seconds; a provider that asks for a longer one is not waited for."""

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.base < 0 or self.cap < self.base:
            raise ConfigError(
                f"a retry policy needs attempts >= 1 and 0 <= base <= cap; got {self.attempts}, {self.base}, {self.cap}"
            )

    def delay(self, error: ModelError, attempt: int, jitter: float = 1.0) -> float | None:
        """Give the seconds to wait after failed call number ``attempt`` (from 1), or None to give up.

        ``jitter`` in 0..1 scales the wait (full jitter); what the provider asked for is never undercut.
        Source: AWS Architecture Blog, "Exponential Backoff And Jitter".
        """
        if not error.retryable or attempt >= self.attempts:
            return None
        wait = min(self.cap, self.base * 2.0 ** min(attempt - 1, 60)) * min(1.0, max(0.0, jitter))
        if error.retry_after is not None:
            if error.retry_after > self.cap:
                return None
            wait = max(wait, error.retry_after)
        return wait


NO_RETRY = RetryPolicy(attempts=1)


def retrying(
    request: ChatRequest,
    role: str = "main",
    *,
    policy: RetryPolicy | None = None,
    jitter: Callable[[], float] = lambda: 1.0,
) -> Flow[ChatReply]:
    """Ask, and ask again by the policy while the failure is one that may pass. The last failure is raised."""
    policy = policy or RetryPolicy()
    attempt = 0
    while True:
        attempt += 1
        try:
            reply: ChatReply = yield Ask(request, role)
        except ModelError as error:
            wait = policy.delay(error, attempt, jitter())
            if wait is None:
                raise
        else:
            return reply
        yield Sleep(wait)
