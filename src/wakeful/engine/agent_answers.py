"""Answer the needs of an agent's flows: its internal model calls, its stores, and its memory.

What an internal model used is kept with the session, for the turn to report; what it said goes to the flow alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wakeful.engine.parts import Parts
from wakeful.engine.session import Session
from wakeful.engine.stream import UsageEvent
from wakeful.engine.trace import NO_SPAN
from wakeful.errors import ConfigError
from wakeful.models.choose import coerce_model
from wakeful.needs import Ask, ChatReply, Embed, Need, Run


class AgentAnswers:
    """Who answers a need: a model of a role, or a store.

    ``models``: models of internal roles; a summariser of the compactor's options and the memory's own model serve where
    none is given, and the agent's model otherwise.
    """

    def __init__(self, parts: Parts, *, store: Any, archive: Any, memory: Any, models: Mapping[str, Any]) -> None:
        options = getattr(parts.compactor, "options", {})
        self._parts = parts
        self._store = store
        self._archive = archive if archive is not None else options.get("archive")
        self._flows = getattr(memory, "flows", None)
        own = getattr(self._flows, "model", None)
        given = {"summarizer": options.get("summarizer"), "extractor": own, **models}
        self._roles = {role: coerce_model(each) for role, each in given.items() if each is not None}

    def answer(self, need: Need, session: Session | None = None) -> Any:
        """Answer a need of a flow: internal model calls, and the stores."""
        match need:
            case Ask(request, role):
                with self._internal(role, session) as note:
                    return note(self._role(role).chat(request))
            case Run(ops, store):
                return self._store_of(store).execute(ops)
            case Embed() if self._flows is not None:
                return self._flows.answer(need)
            case _:
                raise ConfigError(f"this agent can't answer {type(need).__name__}; it has no memory")

    async def aanswer(self, need: Need, session: Session | None = None) -> Any:
        """Answer a need of a flow, awaited."""
        match need:
            case Ask(request, role):
                with self._internal(role, session) as note:
                    return note(await self._role(role).achat(request))
            case Run(ops, store):
                return await self._store_of(store).aexecute(ops)
            case Embed() if self._flows is not None:
                return await self._flows.aanswer(need)
            case _:
                return self.answer(need)

    @contextmanager
    def _internal(self, role: str, session: Session | None) -> Iterator[Callable[[ChatReply], ChatReply]]:
        """Trace an internal model call, and keep what it used for the turn to report."""
        model = self._role(role)
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model.name, "wakeful.role": role}
        span = session.span.child(f"chat {model.name}", attributes) if session is not None else NO_SPAN

        def note(reply: ChatReply) -> ChatReply:
            if reply.usage is not None and session is not None:
                name = reply.model or model.name
                session.internal.append(UsageEvent(reply.usage, role, name, self._parts.price(reply.usage, name)))
                span.set(
                    gen_ai__usage__input_tokens=reply.usage.input_tokens,
                    gen_ai__usage__output_tokens=reply.usage.output_tokens,
                )
            return reply

        try:
            yield note
        except BaseException as error:
            span.end(type(error).__name__)
            raise
        span.end()

    def _role(self, role: str) -> Any:
        return self._roles.get(role, self._parts.model)

    def _store_of(self, store: str) -> Any:
        found = {"session": self._store, "archive": self._archive, "memory": getattr(self._flows, "store", None)}
        if found.get(store) is None:
            raise ConfigError(f"this agent has no {store} store")
        return found[store]
