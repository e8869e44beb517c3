"""A provider on this machine that is as strict as the real ones, for tests with the real SDKs.

It speaks Anthropic Messages, OpenAI Chat Completions and OpenAI Responses, streamed or not, refuses what they refuse
(messages by the rules of ``wakeful.dialects``, what does not fit ``window``, thinking whose history changed), answers
by a script, fails when told to, and keeps what it was sent::

    with ProviderServer() as server:
        server.plan("hello", Failure.rate_limit(retry_after=2), Say("again"))
        client = anthropic.Anthropic(base_url=server.anthropic_url, api_key="none", max_retries=0)
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias

from wakeful.needs import Usage
from wakeful.testing.models import Say
from wakeful.testing.wire import PATHS, Api, Refusal, check, error_body, events, measured, reply_body, thinking_on

HANG = 30.0
"""Longest that a hanging request is held, seconds; a client's own timeout is far shorter."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A way to fail. The class methods name the ways."""

    kind: Literal["status", "half_stream", "short_stream", "stream_error", "garbage", "cut_json", "hang", "disconnect"]
    status: int = 0
    code: str = ""
    message: str = ""
    retry_after: float | None = None

    @classmethod
    def rate_limit(cls, retry_after: float | None = None) -> Failure:
        """429, with ``retry-after`` when given (seconds)."""
        return cls("status", 429, "rate_limit_error", "This request would exceed your rate limit.", retry_after)

    @classmethod
    def overloaded(cls, status: int = 529) -> Failure:
        """529 (or 503, 500)."""
        return cls("status", status, "overloaded_error", "Overloaded")

    @classmethod
    def auth(cls) -> Failure:
        """401."""
        return cls("status", 401, "authentication_error", "invalid x-api-key")

    @classmethod
    def overflow(cls) -> Failure:
        """400: the prompt does not fit."""
        return cls("status", 400, "overflow", "prompt is too long: 250000 tokens > 200000 maximum")

    @classmethod
    def invalid(cls, message: str = "messages: something is wrong") -> Failure:
        """400: malformed."""
        return cls("status", 400, "invalid_request_error", message)

    @classmethod
    def half_stream(cls) -> Failure:
        """The connection breaks in the middle of the reply."""
        return cls("half_stream")

    @classmethod
    def short_stream(cls) -> Failure:
        """The stream ends in good order, but before the reply does."""
        return cls("short_stream")

    @classmethod
    def stream_error(cls) -> Failure:
        """The stream holds an ``overloaded`` error in place of its end."""
        return cls("stream_error", 529, "overloaded_error", "Overloaded")

    @classmethod
    def garbage(cls) -> Failure:
        """200 with a page of HTML."""
        return cls("garbage", 200)

    @classmethod
    def cut_json(cls) -> Failure:
        """200 with JSON that stops in the middle."""
        return cls("cut_json", 200)

    @classmethod
    def hang(cls) -> Failure:
        """No answer until the client gives up."""
        return cls("hang")

    @classmethod
    def disconnect(cls) -> Failure:
        """The connection is closed without an answer."""
        return cls("disconnect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request that the server got."""

    api: Api
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    tokens: int
    """Size of the input by the server's count."""
    refusal: Refusal | None = None
    """Why it was refused; None: it was answered, or failed as planned."""


Step: TypeAlias = "str | Say | Failure"
Respond: TypeAlias = Callable[[Received], Step]


def quarter(text: str) -> int:
    """Count a token for every four characters."""
    return len(text) // 4


class ProviderServer:
    """The server; a context manager.

    ``respond``: answers when nothing is planned. ``window``: tokens of input and asked output together; None: no limit.
    ``count``: the server's token count. ``bind_thinking``: thinking is bound to the messages before it (rule A8).
    ``unsupported``: parameters that the model refuses, by name.
    """

    def __init__(
        self,
        respond: Respond | None = None,
        *,
        window: int | None = None,
        count: Callable[[str], int] = quarter,
        bind_thinking: bool = True,
        unsupported: Iterable[str] = (),
    ) -> None:
        self.requests: list[Received] = []
        """Every request, oldest first."""
        self.window = window
        self.unsupported = set(unsupported)
        self._respond = respond
        self._count = count
        self._bind_thinking = bind_thinking
        self._steps: deque[Step] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _Handler, self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> ProviderServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def anthropic_url(self) -> str:
        """``base_url`` for the ``anthropic`` SDK."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """``base_url`` for the ``openai`` SDK."""
        return self.anthropic_url + "/v1"

    @property
    def refusals(self) -> list[Refusal]:
        """Why requests were refused, oldest first."""
        return [each.refusal for each in self.requests if each.refusal is not None]

    def plan(self, *steps: Step) -> None:
        """Answer the next requests so, in this order. A refused request takes no step."""
        with self._lock:
            self._steps.extend(steps)

    def take(self, api: Api, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[Received, Step]:
        """Record a request and decide its answer."""
        tokens = self._count(measured(api, body))
        received = Received(api=api, body=body, headers=headers, tokens=tokens)
        refusal = (
            self._unsupported(body) or self._overflow(received) or check(api, body, bind_thinking=self._bind_thinking)
        )
        with self._lock:
            if refusal is not None:
                received = replace(received, refusal=refusal)
                self.requests.append(received)
                return received, Failure("status", refusal.status, refusal.code, refusal.message)
            self.requests.append(received)
            if self._steps:
                return received, self._steps.popleft()
        if self._respond is None:
            return received, Failure("status", 500, "script_exhausted", "the server has no answer planned")
        return received, self._respond(received)

    def usage(self, received: Received, say: Say) -> Usage:
        """Count the tokens of a reply."""
        if say.usage is not None:
            return say.usage
        written = say.text + say.thinking + "".join(str(dict(call.arguments)) for call in say.calls)
        return Usage(input_tokens=received.tokens, output_tokens=max(1, self._count(written)))

    def hold(self) -> None:
        """Wait until the server closes."""
        self._closing.wait(HANG)

    def _unsupported(self, body: Mapping[str, Any]) -> Refusal | None:
        for name in sorted(self.unsupported):
            top, _, inner = name.partition(".")
            value = body.get(top)
            if value is not None and (not inner or (isinstance(value, Mapping) and inner in value)):
                return Refusal(
                    f"Unsupported parameter: '{name}' is not supported with this model.",
                    code="unsupported_parameter",
                    param=name,
                )
        return None

    def _overflow(self, received: Received) -> Refusal | None:
        if self.window is None:
            return None
        body, tokens = received.body, received.tokens
        if received.api == "anthropic":
            asked = body.get("max_tokens") or 0
            if tokens > self.window:
                return Refusal(f"prompt is too long: {tokens} tokens > {self.window} maximum")
            if tokens + asked > self.window:
                return Refusal(
                    f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {self.window}, "
                    "decrease input length or `max_tokens` and try again"
                )
            return None
        asked = body.get("max_completion_tokens") or body.get("max_tokens") or body.get("max_output_tokens") or 0
        if tokens + asked > self.window:
            return Refusal(
                f"Input tokens exceed the configured limit of {self.window} tokens. Your messages resulted in {tokens} "
                "tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
                param="messages",
            )
        return None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], owner: ProviderServer) -> None:
        self.owner = owner
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: a client that leaves early is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        api = PATHS.get(self.path.partition("?")[0])
        if api is None:
            self._json(404, {"error": {"message": f"no such endpoint: {self.path}", "type": "not_found_error"}})
            return
        try:
            body = json.loads(raw)
        except ValueError:
            self._json(400, error_body(api, Refusal("the request is not JSON")))
            return
        received, step = self.server.owner.take(api, body, {k.lower(): v for k, v in self.headers.items()})
        if isinstance(step, Failure):
            self._fail(received, step)
            return
        self._answer(received, Say(step) if isinstance(step, str) else step)

    def _answer(self, received: Received, say: Say, *, cut: Failure | None = None) -> None:
        owner, api, body = self.server.owner, received.api, received.body
        if api == "anthropic" and not thinking_on(body):
            say = replace(say, thinking="")
        usage = owner.usage(received, say)
        reply = reply_body(api, body, say, serial=len(owner.requests), usage=usage)
        if not body.get("stream"):
            text = json.dumps(reply)
            if cut is None:
                self._send(200, "application/json", text)
            else:
                self._head(200, "application/json", {"Content-Length": str(len(text.encode()))})
                self.wfile.write(text.encode()[: len(text) // 2])
                self.close_connection = True
            return
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._stream(api, list(events(api, reply, include_usage=wants_usage)), cut)

    def _stream(self, api: Api, parts: list[Any], cut: Failure | None) -> None:
        if cut is not None:
            parts = parts[: max(1, len(parts) // 2)]
            if cut.kind == "stream_error":
                parts.append(("error", error_body(api, Refusal(cut.message, cut.status, cut.code))))
        self._head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        for name, data in parts:
            text = data if isinstance(data, str) else json.dumps(data)
            self._chunk((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
        if cut is not None and cut.kind == "half_stream":
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _fail(self, received: Received, failure: Failure) -> None:
        match failure.kind:
            case "status":
                headers = {} if failure.retry_after is None else {"Retry-After": str(failure.retry_after)}
                self._json(failure.status, error_body(received.api, _worded(received, failure)), headers)
            case "garbage":
                self._send(200, "text/html", "<html><body>It works!</body></html>")
            case "cut_json":
                self._send(200, "application/json", '{"id": "msg_1", "type": "mess')
            case "hang":
                self.server.owner.hold()
                self.close_connection = True
            case "disconnect":
                self.close_connection = True
            case _:
                say = Say("This answer is long enough to be cut somewhere in its middle, and so it is.")
                self._answer(received, say, cut=failure)

    def _json(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(body), headers)

    def _send(self, status: int, kind: str, text: str, headers: Mapping[str, str] | None = None) -> None:
        raw = text.encode()
        self._head(status, kind, {"Content-Length": str(len(raw)), **(headers or {})})
        self.wfile.write(raw)

    def _head(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, text: str) -> None:
        raw = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))


def _worded(received: Received, failure: Failure) -> Refusal:
    """Word a planned failure as this format's provider does."""
    if received.refusal is not None:
        return received.refusal
    message, code = failure.message, failure.code
    if code == "overflow":
        code = ""
        if received.api != "anthropic":
            message = (
                "Input tokens exceed the configured limit of 200000 tokens. Your messages resulted in 250000 tokens. "
                "Please reduce the length of the messages."
            )
            code = "context_length_exceeded"
    elif received.api != "anthropic":
        code = {
            "rate_limit_error": "rate_limit_exceeded",
            "overloaded_error": "server_error",
            "authentication_error": "invalid_api_key",
            "invalid_request_error": "",
        }.get(code, code)
    return Refusal(message, failure.status, code)
