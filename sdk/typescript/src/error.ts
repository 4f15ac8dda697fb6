/** Errors: one type for each code of the API under one base type. */

import type { PushReceipt } from "./types.js";

export interface ErrorFields {
  code: string;
  message: string;
  /** The HTTP status, or null where no answer arrived. */
  status?: number | null;
  /** The parameter that is wrong, where there is one. */
  param?: string | null;
  request_id?: string | null;
  /** Seconds to wait before the next attempt, where the server says so. */
  retry_after?: number | null;
  cause?: unknown;
}

/** What every method of this package throws. A code that this version does not know has this type. */
export class LinesmanError extends Error {
  declare readonly code: string;
  declare readonly status: number | null;
  declare readonly param: string | null;
  declare readonly request_id: string | null;
  declare readonly retry_after: number | null;
  /** Of a push: what the server had confirmed before this error. */
  receipt: PushReceipt | null = null;

  constructor({ message, cause, ...fields }: ErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    Object.assign(this, { status: null, param: null, request_id: null, retry_after: null }, fields);
  }
}

export class InvalidParameter extends LinesmanError {}
export class InvalidBody extends LinesmanError {}
export class AuthenticationFailed extends LinesmanError {}
export class Forbidden extends LinesmanError {}
export class SportNotFound extends LinesmanError {}
export class EventNotFound extends LinesmanError {}
export class NotInHistory extends LinesmanError {}
export class NotFound extends LinesmanError {}
export class MethodNotAllowed extends LinesmanError {}
export class FeedPaused extends LinesmanError {}
export class CursorExpired extends LinesmanError {}
export class RequestTooLarge extends LinesmanError {}
export class RateLimited extends LinesmanError {}
export class TooManyStreams extends LinesmanError {}
export class UpgradeRequired extends LinesmanError {}
export class QuotaExceeded extends LinesmanError {}
export class Internal extends LinesmanError {}
export class Maintenance extends LinesmanError {}
export class Unavailable extends LinesmanError {}

/** No answer arrived: no connection, a connection that broke, or a timeout. */
export class ConnectionFailed extends LinesmanError {
  constructor(message: string, cause: unknown) {
    super({ code: "connection_failed", message, cause });
  }
}

/** An argument of a constructor cannot be used. */
export class InvalidConfiguration extends LinesmanError {
  constructor(message: string) {
    super({ code: "invalid_configuration", message });
  }
}
