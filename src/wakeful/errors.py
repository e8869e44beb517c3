"""Every exception that Wakeful raises.

::

    WakefulError
    ├── ConfigError (ValueError)          a setting, option or argument is wrong
    │   └── MissingExtra (ImportError)    an optional dependency is not installed
    ├── InputError (ValueError)           the data given can't be read
    │   ├── UnknownFormat                 no dialect recognises the messages
    │   └── InvalidHistory                messages break the rules of their format
    ├── MemoryContractError (ValueError)  a scope, record or graph breaks the memory contract
    ├── NotFound (LookupError)            no such id in what the caller may see
    ├── StoreError                        a store could not do what was asked
    │   ├── StoreBusy                     retryable: locked, conflicting or out of connections
    │   ├── StaleWriter                   fenced off: another writer took over
    │   ├── SchemaError                   the store's schema is not one that this version reads
    │   └── EmbeddingMismatch             the store holds vectors of another model
    ├── ModelError                        a model call failed; ``retryable`` says whether to try again
    │   ├── AuthError                     the credentials were refused
    │   ├── RateLimited                   retryable, after ``retry_after`` seconds when known
    │   ├── Overloaded                    retryable
    │   ├── ContextOverflow               the request does not fit the model's window
    │   ├── InvalidRequest                the provider refused the request as malformed
    │   └── TransportError                retryable: the connection failed or ended early
    └── TurnError                         a turn can't go on
        └── IncompleteBatch               results do not match the calls of the batch

A class exists where a caller would do something else. Its docstring is the message when none is given.
"""

from __future__ import annotations

import inspect


class WakefulError(Exception):
    """Something went wrong in Wakeful."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message if message is not None else inspect.getdoc(type(self)) or type(self).__name__)


class ConfigError(WakefulError, ValueError):
    """A setting is wrong."""


class MissingExtra(ConfigError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, *, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs an optional dependency. Install it: pip install 'wakeful[{extra}]'")
        self.extra = extra


class InputError(WakefulError, ValueError):
    """The input can't be read."""


class UnknownFormat(InputError):
    """No dialect recognises these messages; name one with dialect=..."""


class InvalidHistory(InputError):
    """The messages break the rules of their format."""


class MemoryContractError(WakefulError, ValueError):
    """A scope, record or graph breaks the memory contract."""


class NotFound(WakefulError, LookupError):
    """Nothing with this id is visible here."""


class StoreError(WakefulError):
    """The store could not do what was asked; nothing was changed."""


class StoreBusy(StoreError):
    """The store is busy; nothing was changed. Try again."""


class StaleWriter(StoreError):
    """Another writer took over; this one must stop. Nothing was changed."""


class SchemaError(StoreError):
    """The store's schema is not one that this version of Wakeful reads."""


class EmbeddingMismatch(StoreError):
    """The store holds vectors of another embedding model; run reembed, or open it with the model it was made with."""


class ModelError(WakefulError):
    """A model call failed."""

    retryable: bool = False
    """Whether the same request may succeed later."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait before the next try, as told by the provider; None when not told."""


class AuthError(ModelError):
    """The provider refused the credentials."""


class RateLimited(ModelError):
    """The provider's rate limit was reached."""

    retryable = True


class Overloaded(ModelError):
    """The provider is overloaded."""

    retryable = True


class ContextOverflow(ModelError):
    """The request does not fit the model's context window."""


class InvalidRequest(ModelError):
    """The provider refused the request as malformed."""


class TransportError(ModelError):
    """The connection to the provider failed or ended early."""

    retryable = True


class TurnError(WakefulError):
    """The turn can't go on."""


class IncompleteBatch(TurnError):
    """The results do not match the calls of the batch."""
