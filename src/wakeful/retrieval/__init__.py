"""Recall: find what matters for a query, and say why.

``recall`` is the flow; ``Recall``, ``Hit`` and ``Explanation`` are what it gives; ``RecallSettings`` holds every number.
"""

from wakeful.retrieval.hits import ActivationLog, Explanation, Hit, Recall, Spread
from wakeful.retrieval.settings import RecallSettings

__all__ = ["ActivationLog", "Explanation", "Hit", "Recall", "RecallSettings", "Spread"]
