"""The numbers of recall: one setting for all data.

How they were found: evidence recall@10 over the turns of LoCoMo's first five conversations, held against a generated
set of long assistant messages on which nothing was chosen (``bench/locomo.py``, ``bench/long_messages.py``). Every
weight lies on a plateau: half or double of it moves either figure by less than a point, unless its doc says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """Weights and limits of recall. Scores that weights apply to lie in 0 to 1."""

    by_words: int = 96
    """Candidates fetched by words."""
    by_meaning: int = 64
    """Candidates fetched by vector."""
    neighbours_of: int = 30
    """So many of the best candidates bring in what was said just before and after them."""
    k1: float = 1.5
    """BM25: saturation of repeated terms. Source: Lucene's range, 1.2 to 2."""
    b: float = 0.3
    """BM25 among candidates: weight of text length. Lower than the usual 0.75, which favours the short question over
    the long answer: 0.3 gains 4 points on long messages and 0.4 on short turns."""
    dense: float = 0.6
    """Weight of the cosine beside the words' 1.0."""
    dense_long: float = 0.4
    """The same among long texts, whose mean vector says less."""
    window: float = 0.5
    """Weight of the words of a turn and its two neighbours together."""
    session: float = 0.5
    """Weight of the words of all candidates of the session together."""
    session_saturation: float = 1.0
    """A term counts (s + 1) n / (n + s) for n occurrences in a session's candidates."""
    short: float = 40.0
    """Terms. Up to this mean length of the candidates, window, session and neighbours count in full ..."""
    long: float = 90.0
    """... and from this one on, window and session count nothing: their terms are already in one text."""
    from_question: float = 0.8
    """Share of its score that a question passes on to a short text behind it: such an answer seldom repeats the
    question's words. Without it nDCG@10 falls by 5 points on LoCoMo. With the text's own length (``short`` to ``long``) it
    falls to ``from_before``: a long answer repeats them, and passed on in full it costs 2 points on long messages."""
    from_before: float = 0.3
    """Share that any text passes on to what follows it."""
    from_after: float = 0.5
    """Share that a text passes back to what stands before it, among short texts."""
    from_answer: float = 0.2
    """Share that a text passes back to a question before it, among short texts."""
    speaker: float = 0.2
    """Bonus when the query names the one who speaks, and no other speaker."""
    time_words: float = 0.3
    """Bonus for a text with words of time, when the query asks when."""
    question: float = 0.2
    """Malus for a text that ends in a question: it asks for what is sought."""
    length: float = 0.1
    """Weight of ln(1 + terms) / 3, up to 60 terms: very short texts seldom hold evidence."""
    in_period: float = 0.5
    """Bonus for what was said in the period that the query names ("last week", "in May 2024")."""
    importance: float = 0.1
    """Bounded prior: at importance 10; minus the same at 1 or less."""
    recency: float = 0.05
    """Bounded prior: for what was said now, halving with ``recency_days``."""
    recency_days: float = 30.0
    use: float = 0.05
    """Bounded prior: n / (n + 5) of it after n uses."""
    seeds: int = 8
    """So many of the best hits are where activation starts."""
    hops: int = 2
    decay: float = 0.5
    """Share of activation that goes on at each hop. Source: Crestani, "Application of Spreading Activation Techniques
    in Information Retrieval", 1997, section 3 (distance constraint)."""
    ceiling: float = 1.0
    """Activation of a node at most."""
    floor: float = 0.05
    """Activation below this goes no further and brings in nothing."""
    head: int = 5
    """Places that activation alone never changes."""
    similar: float = 0.92
    """Share of terms in common from which a lower hit is taken for a repetition of a higher one."""
