"""Answer the needs of a compaction: the summariser's model and the archive, sync or awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from wakeful.errors import ConfigError
from wakeful.needs import Ask, Need, Run


def answers(summarizer: Any, archive: Any) -> Callable[[Need], Any]:
    """Give the function that answers needs with a chat model and an archive store."""

    def answer(need: Need) -> Any:
        match need:
            case Ask(request, _):
                return summarizer.chat(request)
            case Run(ops, _):
                return archive.execute(ops)
            case _:
                raise ConfigError(f"a compaction needs {type(need).__name__}, which nobody here can answer")

    return answer


def aanswers(summarizer: Any, archive: Any) -> Callable[[Need], Awaitable[Any]]:
    """Give the same, awaited; a store or model with sync methods alone serves as well."""

    async def answer(need: Need) -> Any:
        match need:
            case Ask(request, _):
                return await summarizer.achat(request)
            case Run(ops, _):
                if hasattr(archive, "aexecute"):
                    return await archive.aexecute(ops)
                return archive.execute(ops)
            case _:
                raise ConfigError(f"a compaction needs {type(need).__name__}, which nobody here can answer")

    return answer


def as_summarizer(value: Any) -> Any:
    """Make a chat model of what the caller gave as ``summarizer``; None stays None."""
    if value is None:
        return None
    from wakeful.models.choose import coerce_model

    return coerce_model(value)
