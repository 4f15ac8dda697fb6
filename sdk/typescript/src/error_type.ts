/** The base type of errors, and the creation and lookup of the other types. */

import type { PushReceipt } from "./types.js";

export interface ErrorFields {
  code: string;
  message: string;
  /** The HTTP status, or null if no answer arrived. */
  status?: number | null;
  /** The invalid parameter, if there is one. */
  param?: string | null;
  request_id?: string | null;
  /** Seconds to wait before the next attempt, if the server sent them. */
  retry_after?: number | null;
  cause?: unknown;
}

/** The base type of all errors of this package, and the type of codes that this version does not know. */
export class LinesmanError extends Error {
  declare readonly code: string;
  declare readonly status: number | null;
  declare readonly param: string | null;
  declare readonly request_id: string | null;
  declare readonly retry_after: number | null;
  /** For a push: the part that the server had confirmed before this error. */
  receipt: PushReceipt | null = null;

  constructor({ message, ...fields }: ErrorFields) {
    // `Error` uses only `cause`, if there is one.
    super(message, fields);
    Object.assign(this, { status: null, param: null, request_id: null, retry_after: null }, fields);
  }
}

type ErrorType = typeof LinesmanError;

const TYPES = new Map<string, ErrorType>();

/** The type of the errors with a code. */
export function typeOf(code: string): ErrorType {
  return TYPES.get(code) ?? LinesmanError;
}

/** Sets the `name` of a type's errors, even if a bundler renames the type. */
export function named<Type extends { prototype: Error }>(type: Type, name: string): Type {
  type.prototype.name = name;
  return type;
}

/** Creates the type for a code: `NotFound` for `not_found`. */
export function typeFor(name: string): ErrorType {
  const type = named(class extends LinesmanError {}, name);
  TYPES.set(name.replace(/\B[A-Z]/g, "_$&").toLowerCase(), type);
  return type;
}

named(LinesmanError, "LinesmanError");

/** The error for what the API does not send. */
export function notOfTheApi(message: string, fields: Partial<ErrorFields> = {}): LinesmanError {
  return new LinesmanError({ code: "unexpected_response", message, ...fields });
}
