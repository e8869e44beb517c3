"""The cellar of memory: the only code that reaches a database. ``open_store(url)`` opens one; see ``protocol``."""

from wakeful.stores.protocol import EmbeddingSpace, Store, open_store

__all__ = ["EmbeddingSpace", "Store", "open_store"]
