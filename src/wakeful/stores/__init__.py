"""The cellar of memory: the only code that reaches a database. ``open_store(url)`` opens one; see ``opening``."""

from wakeful.stores.opening import open_store
from wakeful.stores.protocol import EmbeddingSpace, Store

__all__ = ["EmbeddingSpace", "Store", "open_store"]
