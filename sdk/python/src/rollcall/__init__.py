"""Client of Rollcall, the control plane that knows which machines are present, healthy and eligible for work."""

from .aio import AsyncClient, AsyncEventWatch
from .bookmark import Bookmark
from .client import Client, EventWatch
from .errors import (
    ConfigurationError,
    FieldViolation,
    OverloadedError,
    RefusedError,
    RollcallError,
    TimedOutError,
    UnreachableError,
)
from .node_cache import NodeCache
from .node_view import NodeChange, NodeView
from .reasons import Reason
from .retry import RetryPolicy

__all__ = [
    "AsyncClient",
    "AsyncEventWatch",
    "Bookmark",
    "Client",
    "ConfigurationError",
    "EventWatch",
    "FieldViolation",
    "NodeCache",
    "NodeChange",
    "NodeView",
    "OverloadedError",
    "Reason",
    "RefusedError",
    "RetryPolicy",
    "RollcallError",
    "TimedOutError",
    "UnreachableError",
]
