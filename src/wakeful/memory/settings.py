"""The numbers and switches of writing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingSettings:
    """How memories are written."""

    scrub: bool = True
    """Remove secrets by name and by value before anything is stored or sent to a model."""
    neighbours: int = 8
    """Existing memories that a new fact is compared with, at most."""
    same: float = 0.8
    """Share of words in common from which two facts of equal numbers, names and negation say the same."""
    batch: int = 1000
    """Rows of one transaction when a large batch, an import or a re-embedding is written in parts."""
    extraction_tries: int = 2
    """Times that a model is asked before an extraction is parked."""
    max_facts: int = 24
    """Facts taken from one extraction, at most."""
    working_entries: int = 32
    """Entries of the working layer that a session keeps."""
    working_seconds: float = 6 * 3600.0
    """Life of a working entry, seconds."""
    lease_seconds: float = 60.0
    """How long a claimed reminder waits to be acknowledged before it is given again."""
    late_seconds: float = 120.0
    """A reminder given later than this after its time is marked late."""
