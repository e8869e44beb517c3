"""What every store promises, as a pytest class to inherit.

::

    from wakeful.stores.conformance import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda **options: MyStore(tmp_path / "store", **options)

``open_store(**options)`` opens the same place each time; ``options`` are ``embedding`` (``EmbeddingSpace``) and ``adopt``.
A store that does not outlive its object sets ``persistent = False``. Needs pytest and hypothesis.
"""

from wakeful.stores.conformance.erasure import ErasurePromises
from wakeful.stores.conformance.fixtures import Fixtures
from wakeful.stores.conformance.graph import GraphPromises
from wakeful.stores.conformance.nodes import NodePromises
from wakeful.stores.conformance.scopes import ScopePromises
from wakeful.stores.conformance.searching import SearchPromises
from wakeful.stores.conformance.sketches import SketchPromises
from wakeful.stores.conformance.working import WorkPromises

__all__ = ["StoreContract"]


class StoreContract(
    ScopePromises, NodePromises, GraphPromises, SearchPromises, SketchPromises, WorkPromises, ErasurePromises, Fixtures
):
    """Every promise of a store."""
