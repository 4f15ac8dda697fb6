"""Errors: one type for each code of the API, under one base type."""

from __future__ import annotations

from .types import PushReceipt


class LinesmanError(Exception):
    """The base type of all errors of this package, and the type of codes that this version does not know."""

    receipt: PushReceipt | None = None
    """For a push: the part that the server had confirmed before this error."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        """The HTTP status; None if no response arrived."""
        self.param = param
        """The invalid parameter, if there is one."""
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds to wait before the next attempt, if the server sent them."""

    def __str__(self) -> str:
        parts = [f"{self.code}: {self.message}"]
        parts += [f"param {self.param}"] if self.param else []
        parts += [f"request {self.request_id}"] if self.request_id else []
        return " · ".join(parts)


class InvalidParameter(LinesmanError):
    """A parameter is unknown, empty or outside its set; `param` names it."""


class InvalidBody(LinesmanError):
    """The body of a push cannot be read."""


class AuthenticationFailed(LinesmanError):
    """The key or token is missing, malformed, unknown or revoked."""


class Forbidden(LinesmanError):
    """The key may not read this, or the token may not push it."""


class SportNotFound(LinesmanError):
    """There is no such sport."""


class EventNotFound(LinesmanError):
    """The event is unknown, cancelled or removed."""


class NotInHistory(LinesmanError):
    """There is no publication of the time in `as_of`."""


class NotFound(LinesmanError):
    """There is no such path: is the URL that of a Linesman server?"""


class MethodNotAllowed(LinesmanError):
    """The path takes other methods."""


class FeedPaused(LinesmanError):
    """An operator has paused the feed."""


class CursorExpired(LinesmanError):
    """The changes since this cursor are no longer available."""


class RequestTooLarge(LinesmanError):
    """The request is larger than the server reads: send fewer ids."""


class RangeNotSatisfiable(LinesmanError):
    """The requested part of a file is beyond its end."""


class RateLimited(LinesmanError):
    """The limit for one minute is reached."""


class QuotaExceeded(LinesmanError):
    """The quota for the day or month is reached."""


class TooManyStreams(LinesmanError):
    """The key has the maximum number of streams open."""


class UpgradeRequired(LinesmanError):
    """The request names a version of WebSocket other than 13."""


class Internal(LinesmanError):
    """The server failed."""


class Maintenance(LinesmanError):
    """An operator has closed the service temporarily."""


class Unavailable(LinesmanError):
    """The server cannot answer at the moment."""


class ConnectionFailed(LinesmanError):
    """No response arrived: no connection, a lost connection, or a timeout."""


class InvalidConfiguration(LinesmanError):
    """An argument of a constructor is invalid."""


BY_CODE: dict[str, type[LinesmanError]] = {
    "invalid_parameter": InvalidParameter,
    "invalid_body": InvalidBody,
    "authentication_failed": AuthenticationFailed,
    "forbidden": Forbidden,
    "sport_not_found": SportNotFound,
    "event_not_found": EventNotFound,
    "not_in_history": NotInHistory,
    "not_found": NotFound,
    "method_not_allowed": MethodNotAllowed,
    "feed_paused": FeedPaused,
    "cursor_expired": CursorExpired,
    "request_too_large": RequestTooLarge,
    "range_not_satisfiable": RangeNotSatisfiable,
    "rate_limited": RateLimited,
    "quota_exceeded": QuotaExceeded,
    "too_many_streams": TooManyStreams,
    "upgrade_required": UpgradeRequired,
    "internal": Internal,
    "maintenance": Maintenance,
    "unavailable": Unavailable,
}
