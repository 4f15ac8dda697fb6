/** The base type of errors, and how the others are made and found. */

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

  constructor({ message, ...fields }: ErrorFields) {
    // Of the fields it takes `cause`, where there is one.
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

/** Gives the errors of a type its name, also where a bundler renames the type. */
export function named<Type extends { prototype: Error }>(type: Type, name: string): Type {
  type.prototype.name = name;
  return type;
}

/** A type of its own for a code: `NotFound` for `not_found`. */
export function typeFor(name: string): ErrorType {
  const type = named(class extends LinesmanError {}, name);
  TYPES.set(name.replace(/\B[A-Z]/g, "_$&").toLowerCase(), type);
  return type;
}

named(LinesmanError, "LinesmanError");
