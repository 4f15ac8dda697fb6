"""Client of Linesman, a sports odds data service."""

from . import types
from ._client import AsyncLinesman, Linesman
from ._error import (
    AuthenticationFailed,
    ConnectionFailed,
    CursorExpired,
    EventNotFound,
    FeedPaused,
    Forbidden,
    Internal,
    InvalidBody,
    InvalidConfiguration,
    InvalidParameter,
    LinesmanError,
    Maintenance,
    MethodNotAllowed,
    NotFound,
    NotInHistory,
    QuotaExceeded,
    RangeNotSatisfiable,
    RateLimited,
    RequestTooLarge,
    SportNotFound,
    TooManyStreams,
    UpgradeRequired,
    Unavailable,
)
from ._export import Export
from ._feed import AsyncFeed, Feed
from ._http import AsyncClock, Clock
from ._result import AsyncList, AsyncRecordList, Delta, List, Meta, Page, RecordList, Result
from ._state import State, StreamEvent, Update
from ._stream import AsyncChanges, Changes
from ._version import __version__

__all__ = [
    "AsyncChanges",
    "AsyncClock",
    "AsyncFeed",
    "AsyncLinesman",
    "AsyncList",
    "AsyncRecordList",
    "AuthenticationFailed",
    "Changes",
    "Clock",
    "ConnectionFailed",
    "CursorExpired",
    "Delta",
    "EventNotFound",
    "Export",
    "Feed",
    "FeedPaused",
    "Forbidden",
    "Internal",
    "InvalidBody",
    "InvalidConfiguration",
    "InvalidParameter",
    "Linesman",
    "LinesmanError",
    "List",
    "Maintenance",
    "Meta",
    "MethodNotAllowed",
    "NotFound",
    "NotInHistory",
    "Page",
    "QuotaExceeded",
    "RangeNotSatisfiable",
    "RateLimited",
    "RecordList",
    "RequestTooLarge",
    "Result",
    "SportNotFound",
    "State",
    "StreamEvent",
    "TooManyStreams",
    "Unavailable",
    "Update",
    "UpgradeRequired",
    "__version__",
    "types",
]
