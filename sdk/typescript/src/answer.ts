/** Answers: reading the body, and the error that an answer describes. */

import { notOfTheApi, typeOf } from "./error_type.js";
import type { LinesmanError } from "./error_type.js";

/** Far larger than the largest page; a server that sends more is not Linesman. */
const BYTES_MAX = 2 ** 26;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  bytes: number;
}

export async function readAnswer(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let [text, bytes] = ["", 0];
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    bytes += part.value.byteLength;
    if (bytes > BYTES_MAX) {
      await reader?.cancel();
      throw unexpected(response, `is larger than ${BYTES_MAX} bytes`);
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return { status, headers, text: text + decoder.decode(), bytes };
}

/** The body as JSON. */
export function parse<Body>(answer: Answer): Body {
  try {
    return JSON.parse(answer.text) as Body;
  } catch {
    throw unexpected(answer, "is not JSON");
  }
}

/** The error described by an answer that is not a success. */
export function errorOf(answer: Answer): LinesmanError {
  const { status, headers } = answer;
  if (status < 400) return unexpected(answer, "is a redirect");
  const retry_after = retryAfter(headers);
  const { code, message, param } = described(answer.text);
  if (!code) return unexpected(answer, "has no error body", retry_after);
  const request_id = requestId(headers);
  return new (typeOf(code))({ code, message: String(message), status, param: param ?? null, request_id, retry_after });
}

export const requestId = (headers: Headers): string | null => headers.get("x-request-id");

/** An answer that the API does not define. It is not quoted, since its content is unknown. */
export function unexpected(
  { status, headers }: { status: number; headers: Headers }, what: string, retry_after: number | null = null,
): LinesmanError {
  return notOfTheApi(`the answer (${status}) ${what}`, { status, request_id: requestId(headers), retry_after });
}

function described(text: string): { code?: string; message?: string; param?: string } {
  try {
    const { error } = JSON.parse(text);
    return typeof error.code === "string" ? error : {};
  } catch {
    return {}; // A proxy's page, reported as `unexpected_response`.
  }
}

/** Seconds, or a date as proxies send it, relative to the answer's own date. */
function retryAfter(headers: Headers): number | null {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(value)) return +value;
  const seconds = (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1000;
  return isNaN(seconds) ? null : Math.max(0, seconds);
}
