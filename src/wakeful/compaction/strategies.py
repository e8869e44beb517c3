"""The strategies: which moves are made, in which order, and how far.

Each is a flow over a ``Draft``; only a digest may ask for something. Rules of the file:

- A rung is used only as far as needed. The newest ``keep_recent`` rounds are touched only when the history would not
  fit otherwise, and then only until it fits. Where that number is not the caller's own, some yield to a digest (``room``).
- Everything here is a fixed point: run again on its own result with the same budget, it changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from wakeful.compaction.archive import archive_id
from wakeful.compaction.digest import digest
from wakeful.compaction.digest_parts import Digest as Accepted
from wakeful.compaction.digest_parts import DigestLimits, DigestSource, Refused
from wakeful.compaction.draft import Draft, Taken
from wakeful.compaction.moves import Digest, Drop
from wakeful.compaction.policy import MIN_BATCH, MIN_CLEAR, MIN_DIGEST, digest_most
from wakeful.compaction.room import LEAST_KEPT, summary_tokens, to_keep, wanted
from wakeful.compaction.rounds import Round
from wakeful.compaction.shorten import LEAST
from wakeful.dialects.protocol import Kind
from wakeful.needs import Flow

_stop = itemgetter(1)

BYTES_PER_TOKEN = 5
"""Bytes that a token of a summary takes in a request, with its escapes; for planning only."""

WAY = 1 / 3
"""Most of the room that an open round makes for a digest, as a share, when the two do not fit together."""

PLACEHOLDER_TOKENS = 44
"""Tokens of a cleared result with the structure around it, for planning only; what is made is weighed."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A strategy that can't go on: the history stays as it was."""

    reason: str


Outcome = Failed | None


def oldest_first(draft: Draft) -> Flow[Outcome]:
    """Drop the oldest closed rounds down to the target."""
    keep = draft.policy.keep_recent
    _drop(
        draft, _oldest(draft, _with_summaries(draft, draft.old(keep)), draft.at_goal), "the oldest rounds are dropped"
    )
    if not draft.fits():
        _drop(draft, _oldest(draft, draft.recent(keep), draft.at_room), "it would not fit otherwise")
    if not draft.fits():
        draft.take_summaries_back("it would not fit otherwise")
    return None
    yield  # a flow like the others, though it needs nothing


def sliding_window(draft: Draft) -> Flow[Outcome]:
    """Keep the last ``keep_recent`` rounds and what is pinned."""
    _drop(draft, _with_summaries(draft, draft.old(draft.policy.keep_recent)), "older than the rounds to keep")
    return None
    yield


def clear(draft: Draft) -> Flow[Outcome]:
    """Clear old results and arguments down to the target."""
    _clear(draft, draft.old(draft.policy.keep_recent), draft.reached)
    return None
    yield


def summarize(draft: Draft) -> Flow[Outcome]:
    """Digest everything before the last ``keep_recent`` rounds; a failed digest is an error."""
    span = draft.old(to_keep(draft))
    if not span:
        return None
    rest = draft.tokens - draft.weight_of_all(span) - summary_tokens(draft)
    refused = yield from _digest(draft, span, _digest_room(draft, rest), fallback=False)
    return Failed(refused) if refused else None


def ladder(draft: Draft) -> Flow[Outcome]:
    """Clear, digest, drop, shorten: each rung only as far as needed."""
    keep = draft.policy.keep_recent
    old = draft.old(keep)
    cut, clearing = _cut(draft, old)
    if cut or not clearing:
        asked, keep = keep, to_keep(draft)
        if keep < asked or keep <= LEAST_KEPT:
            old = draft.old(keep)
            if keep <= LEAST_KEPT:
                _make_way(draft, old)
            cut, clearing = _cut(draft, old)
    if clearing:
        _clear(draft, old[cut:], draft.reached)
    cut = _extend(draft, old, cut)
    if cut:
        yield from _digest_or_drop(draft, old[:cut], old)
    if not draft.rests():
        left = [r for r in old if r.start not in draft.gone]
        _drop(draft, _oldest(draft, left, draft.at_start), "the digest came out larger than planned")
    if not draft.fits():
        _clear(draft, draft.recent(keep), draft.fits)
    if not draft.fits():
        _shorten(draft, draft.room)
    if not draft.fits():
        recent = _oldest(draft, draft.recent(keep), draft.at_room)
        _drop(draft, recent, "it would not fit otherwise")
    if not draft.fits():
        _drop(draft, _with_summaries(draft, []), "it would not fit otherwise")
        draft.take_summaries_back("there is no room for a digest")
    return None


RUN: dict[str, Callable[[Draft], Flow[Outcome]]] = {
    "oldest_first": oldest_first,
    "sliding_window": sliding_window,
    "clear": clear,
    "summarize": summarize,
    "ladder": ladder,
}
"""Strategies by name."""


# -- dropping ---------------------------------------------------------------------------------------------------


def _with_summaries(draft: Draft, rounds: list[Round]) -> list[Round]:
    """Put summaries of earlier compactions before the rounds: they are the oldest."""
    own = [r for r in draft.rounds if r.pinned == "own" and r.start not in draft.ours and r.start not in draft.gone]
    return own + rounds


def _oldest(draft: Draft, rounds: Sequence[Round], limits: tuple[int, int]) -> Sequence[Round]:
    """Give the oldest rounds that must go until tokens and bytes are within ``limits``; nothing is removed."""
    if not rounds or draft.within(limits):
        return ()
    tokens, size = draft.tokens - limits[0], draft.size - limits[1]
    heavy, large = draft.running()
    if draft.neighbours(rounds):
        first = rounds[0][0]
        stop = max(bisect_left(heavy, heavy[first] + tokens, first), bisect_left(large, large[first] + size, first))
        return rounds[: bisect_left(rounds, stop, key=_stop) + 1]
    for at, (start, stop, *_) in enumerate(rounds, start=1):
        tokens -= heavy[stop] - heavy[start]
        size -= large[stop] - large[start]
        if tokens <= 0 and size <= 0:
            return rounds[:at]
    return rounds


def _drop(draft: Draft, rounds: Sequence[Round], reason: str) -> None:
    if not rounds:
        return
    before = draft.tokens
    places = draft.remove(rounds)
    ids = _take(draft, places) if draft.policy.archive else ()
    draft.moves.append(
        Drop(
            indexes=_origins(draft, places),
            archive_id=", ".join(ids),
            tokens_before=before - draft.tokens,
            reason=reason,
        )
    )


def _origins(draft: Draft, places: Sequence[int]) -> tuple[int, ...]:
    """Give the caller's indexes of places."""
    origins = draft.history.origins
    return tuple(places) if type(origins) is range else tuple([origins[i] for i in places])


def _take(draft: Draft, places: Sequence[int]) -> tuple[str, ...]:
    """Note removed messages for the archive, a record for each run of neighbours; gives the ids."""
    runs: list[list[int]] = []
    for i in places:
        if runs and runs[-1][-1] == i - 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    ids: list[str] = []
    for run in runs:
        messages = tuple(draft.original(i) for i in run)
        id = archive_id(draft.dialect.name, [draft.dialect.dumps(message) for message in messages])
        ids.append(id)
        if id not in draft.taken:
            tokens = sum(draft.history.weights[i].tokens for i in run)
            what = f"{len(run)} message{'s' if len(run) != 1 else ''}"
            draft.taken[id] = Taken(id, tuple(draft.history.origins[i] for i in run), messages, what, tokens)
    return tuple(ids)


# -- clearing ---------------------------------------------------------------------------------------------------


def _savings(draft: Draft, rounds: Sequence[Round]) -> list[int]:
    """Tokens that clearing each of these rounds would about save, without reading it."""
    saved: list[int] = []
    total = 0
    for weight in draft.weights:
        saved.append(total)
        results = weight[3]
        if results and weight[0] == Kind.RESULTS and weight[1] > MIN_CLEAR * len(results):
            total += weight[1] - PLACEHOLDER_TOKENS * len(results)
    saved.append(total)
    return [saved[r[1]] - saved[r[0]] for r in rounds]


def _clear(draft: Draft, rounds: Sequence[Round], enough: Callable[[], bool]) -> None:
    """Clear rounds, oldest first, until it is enough; media too when bytes are what is over."""
    for r in rounds:
        if enough():
            return
        media = draft.size > draft.byte_goal
        if not media and draft.tokens <= draft.goal:
            return
        draft.clear(r, media=media)


def _cut(draft: Draft, old: Sequence[Round]) -> tuple[int, bool]:
    """Say how many of the oldest rounds must be digested, and whether the others are to be cleared. An estimate."""
    if not old or draft.reached():
        return 0, False
    over = draft.tokens - draft.goal
    if over <= 0:
        return 0, True
    saved = _savings(draft, old)
    total = sum(saved)
    if total >= over:
        return 0, True
    clearing = total >= MIN_BATCH * draft.room
    if not clearing:
        return 0, False
    need = draft.tokens - total - draft.goal + _fresh_room(draft, old)
    tokens = draft.running()[0]
    for at, r in enumerate(old):
        if need <= 0:
            return at, True
        need -= tokens[r[1]] - tokens[r[0]] - saved[at]
    return len(old), True


def _fresh_room(draft: Draft, old: Sequence[Round]) -> int:
    """Tokens that a summary may add to what there is, when the rounds before the newest are digested."""
    summaries = summary_tokens(draft)
    return _digest_room(draft, draft.tokens - draft.weight_of_all(old) - summaries) - summaries


def _extend(draft: Draft, old: Sequence[Round], cut: int) -> int:
    """Give the number of the oldest rounds to digest so that, with its summary, the history comes down to the target."""
    if draft.reached():
        return 0
    room = _fresh_room(draft, old)
    tokens = draft.tokens + max(0, room) - draft.goal
    size = draft.size + BYTES_PER_TOKEN * max(0, room) - draft.byte_goal
    heavy, large = draft.running()
    for at, r in enumerate(old):
        if at >= cut and tokens <= 0 and size <= 0:
            return at
        tokens -= heavy[r[1]] - heavy[r[0]]
        size -= large[r[1]] - large[r[0]]
    return len(old)


# -- digesting --------------------------------------------------------------------------------------------------


def _digest_room(draft: Draft, rest: int) -> int:
    """Tokens that a summary may have beside ``rest``; below ``MIN_DIGEST`` it is not worth trying."""
    overhead = draft.dialect.facts.message_overhead
    most = digest_most(draft.goal)
    room = min(most, draft.goal - rest)
    if room < MIN_DIGEST:
        room = min(most, draft.room - rest)
    if draft.policy.budget.max_bytes is not None:
        room = min(room, digest_most(draft.byte_goal // BYTES_PER_TOKEN))
    return max(0, room - overhead)


def _digest_or_drop(draft: Draft, span: list[Round], old: list[Round]) -> Flow[None]:
    rest = draft.tokens - draft.weight_of_all(span) - summary_tokens(draft)
    refused = yield from _digest(draft, span, _digest_room(draft, rest), fallback=True)
    if refused:
        draft.notes.append(f"digest: {refused}")
        _drop(draft, _oldest(draft, old, draft.at_goal), f"no digest ({refused})")


def _digest(draft: Draft, span: list[Round], room: int, *, fallback: bool) -> Flow[str]:
    """Digest a span into the summary; gives why not, or "" when it was done."""
    policy = draft.policy
    if not span:
        return "nothing_to_digest"
    if room < MIN_DIGEST:
        return "no_room_for_a_summary"
    places = [i for r in span for i in range(r[0], r[1])]
    old = [summary for summary in draft.summaries if summary.place not in draft.gone]
    previous = "\n".join(summary.text for summary in old) or None
    before = draft.weight_of_all(span)
    taken = dict(draft.taken)
    ids = _take(draft, places) if policy.archive else ()
    weights = draft.weights
    messages = [draft.original(i) for i in places] if draft.edited else [draft.messages[i] for i in places]
    origins = draft.history.origins
    if policy.dry_run and policy.summarizer:
        draft.remove(span)
        draft.tokens += room
        draft.moves.append(
            Digest(
                indexes=_origins(draft, places),
                archive_id=", ".join(ids),
                tokens_before=before,
                tokens_after=room,
                source="planned",
            )
        )
        return ""
    answer = yield from digest(
        DigestSource(
            dialect=draft.dialect,
            messages=messages,
            tokens=before + summary_tokens(draft),
            archive_ids=ids,
            position=max(0, origins[places[0]]),
            people=[at for at, i in enumerate(places) if weights[i][0] == Kind.USER],
            weights=[weights[i][1] for i in places],
        ),
        DigestLimits(
            max_tokens=room,
            count=draft.count,
            fallback=fallback,
            summarizer_window=policy.summarizer_window,
            breaker=policy.breaker,
        ),
        summarizer=policy.summarizer,
        previous=previous,
        instructions=policy.instructions,
    )
    draft.breaker = answer.breaker
    if isinstance(answer, Refused):
        draft.taken = taken
        return f"{answer.code}: {answer.detail}" if answer.detail else answer.code
    return _place(draft, span, answer, ids, before)


def _place(draft: Draft, span: list[Round], answer: Accepted, ids: tuple[str, ...], before: int) -> str:
    places = draft.remove(span)
    draft.set_summary(answer.text)
    if answer.fallback:
        draft.notes.append(f"summarizer: {answer.fallback}; the extractive digest stands in")
    draft.moves.append(
        Digest(
            indexes=_origins(draft, places),
            archive_id=", ".join(ids),
            tokens_before=before,
            tokens_after=answer.tokens,
            source=answer.by,
        )
    )
    return ""


# -- shortening -------------------------------------------------------------------------------------------------


def _make_way(draft: Draft, old: Sequence[Round]) -> None:
    """Shorten the open round where it leaves no room at all for a digest of the old ones: a part of one content is not
    worth all that went before."""
    rest = draft.tokens - draft.weight_of_all(old) - summary_tokens(draft)
    if old and draft.room - rest < MIN_DIGEST + draft.dialect.facts.message_overhead:
        room = min(wanted(draft, old), int(draft.room * WAY))
        _shorten(draft, draft.tokens - (rest + room - draft.room))


def _shorten(draft: Draft, limit: int) -> None:
    """Shorten the largest contents of the open round until there are at most ``limit`` tokens; each to one size, found
    from what must go."""
    for _ in range(4):
        over = draft.tokens - limit
        blocks = draft.open_blocks()
        if over <= 0 or not blocks:
            return
        size = _level([tokens for tokens, *_ in blocks], over)
        done = False
        for tokens, i, at, block in blocks:
            if draft.tokens <= limit:
                return
            if tokens > size:
                done = draft.shorten_block(i, at, block, max(LEAST, size)) or done
        if not done:
            return


def _level(sizes: Sequence[int], over: int) -> int:
    """Give the size to which the largest must come down, so that ``over`` tokens go; ``sizes`` descending."""
    total = 0
    for n, size in enumerate(sizes, start=1):
        total += size
        below = sizes[n] if n < len(sizes) else 0
        level = (total - over) // n
        if level >= below:
            return max(0, level)
    return 0
