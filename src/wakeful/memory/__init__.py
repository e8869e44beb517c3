"""Memory: what is written, how it is cleaned, compared and kept, and what falls due.

Flows over store operations; the hall (``wakeful.engine.memory``) gives them their faces.
"""

from wakeful.memory.export import Export
from wakeful.memory.receipts import Erased, Imported, Reembedded, Remembered, Written
from wakeful.memory.reminders import Due, Schedule
from wakeful.memory.settings import WritingSettings

__all__ = ["Due", "Erased", "Export", "Imported", "Reembedded", "Remembered", "Schedule", "WritingSettings", "Written"]
