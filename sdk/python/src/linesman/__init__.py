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
    RateLimited,
    RequestTooLarge,
    SportNotFound,
    TooManyStreams,
    Unavailable,
)
from ._feed import AsyncFeed, Feed
from ._http import AsyncClock, Clock
from ._result import AsyncList, List, Meta, Page, Result
from ._version import __version__

__all__ = [
    "AsyncClock",
    "AsyncFeed",
    "AsyncLinesman",
    "AsyncList",
    "AuthenticationFailed",
    "Clock",
    "ConnectionFailed",
    "CursorExpired",
    "EventNotFound",
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
    "RateLimited",
    "RequestTooLarge",
    "Result",
    "SportNotFound",
    "TooManyStreams",
    "Unavailable",
    "__version__",
    "types",
]
