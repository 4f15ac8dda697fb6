/** Errors: one type for each code of the API under one base type. */

import { LinesmanError, named, typeFor } from "./error_type.js";

export { LinesmanError } from "./error_type.js";
export type { ErrorFields } from "./error_type.js";

export const InvalidParameter = typeFor("InvalidParameter");
export type InvalidParameter = LinesmanError;
export const InvalidBody = typeFor("InvalidBody");
export type InvalidBody = LinesmanError;
export const AuthenticationFailed = typeFor("AuthenticationFailed");
export type AuthenticationFailed = LinesmanError;
export const Forbidden = typeFor("Forbidden");
export type Forbidden = LinesmanError;
export const SportNotFound = typeFor("SportNotFound");
export type SportNotFound = LinesmanError;
export const EventNotFound = typeFor("EventNotFound");
export type EventNotFound = LinesmanError;
export const NotInHistory = typeFor("NotInHistory");
export type NotInHistory = LinesmanError;
export const NotFound = typeFor("NotFound");
export type NotFound = LinesmanError;
export const MethodNotAllowed = typeFor("MethodNotAllowed");
export type MethodNotAllowed = LinesmanError;
export const FeedPaused = typeFor("FeedPaused");
export type FeedPaused = LinesmanError;
export const CursorExpired = typeFor("CursorExpired");
export type CursorExpired = LinesmanError;
export const RequestTooLarge = typeFor("RequestTooLarge");
export type RequestTooLarge = LinesmanError;
export const RangeNotSatisfiable = typeFor("RangeNotSatisfiable");
export type RangeNotSatisfiable = LinesmanError;
export const RateLimited = typeFor("RateLimited");
export type RateLimited = LinesmanError;
export const TooManyStreams = typeFor("TooManyStreams");
export type TooManyStreams = LinesmanError;
export const UpgradeRequired = typeFor("UpgradeRequired");
export type UpgradeRequired = LinesmanError;
export const QuotaExceeded = typeFor("QuotaExceeded");
export type QuotaExceeded = LinesmanError;
export const Internal = typeFor("Internal");
export type Internal = LinesmanError;
export const Maintenance = typeFor("Maintenance");
export type Maintenance = LinesmanError;
export const Unavailable = typeFor("Unavailable");
export type Unavailable = LinesmanError;

/** No answer arrived: no connection, a lost connection, or a timeout. */
export class ConnectionFailed extends LinesmanError {
  constructor(message: string, cause?: unknown) {
    super({ code: "connection_failed", message, cause });
  }
}

/** An argument of a constructor is invalid. */
export class InvalidConfiguration extends LinesmanError {
  constructor(message: string) {
    super({ code: "invalid_configuration", message });
  }
}

named(ConnectionFailed, "ConnectionFailed");
named(InvalidConfiguration, "InvalidConfiguration");
