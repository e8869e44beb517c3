"""Check a compacted history before it is returned. A fault here is a defect: the history then stays as it was."""

from __future__ import annotations

from wakeful.compaction.apply import Final
from wakeful.compaction.draft import Draft
from wakeful.compaction.repair import is_whole
from wakeful.dialects.protocol import Dialect, Kind


def faults(dialect: Dialect, draft: Draft, final: Final, given: int, *, dry_run: bool = False) -> list[str]:
    """Say what is wrong with a history, if anything."""
    history = final.history
    wrong: list[str] = []
    if not history.messages:
        return ["nothing would be left"] if given else []
    if history.kinds()[0] == Kind.RESULTS:
        wrong.append("it would start with a result")
    if not is_whole(dialect, history):
        wrong.append("a call and its results, or the roles, would not be in order")
    if draft.digested and not dry_run and draft.summary is not None and history.messages[-1] is draft.summary[0]:
        wrong.append("the summary would be the last message")
    for pinned in (draft.first_user, draft.latest_user):
        if pinned >= 0 and pinned in draft.gone:
            wrong.append("a pinned message of the user would be gone")
    alive = len(history.origins) - history.origins.count(-1)
    alive += sum(len(group) - 1 for group in history.merged.values())
    if alive + len(final.dropped) != given:
        wrong.append(f"{given} messages came, {alive} would be kept and {len(final.dropped)} dropped")
    return wrong
