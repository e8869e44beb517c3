"""Search one owner's rows in memory: words by BM25 over sorted postings, vectors by sign codes and second looks.

A ``Segment`` holds what search needs of one owner's rows, as numpy arrays. A store loads it once, adds what was written
since, and asks it; every change made by another process is in the store's change numbers, so a segment is never behind
what the reader's transaction sees. A ``Sidecar`` keeps the segments used last within a bound of bytes. Nothing here is
durable and nothing is needed for correctness: the rows that it finds are read again through the store's own predicate.

Importing this package needs no numpy; making a ``Segment`` does.
"""

from wakeful.stores.sidecar.cache import Sidecar
from wakeful.stores.sidecar.segment import Segment, Wanted

__all__ = ["Segment", "Sidecar", "Wanted"]
