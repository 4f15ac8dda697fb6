/** Responses by path and query. One cache belongs to one client, and so to one server and one key. */

import { requestId } from "./answer.js";
import type { Answer } from "./answer.js";
import type { Meta } from "./list.js";

const RESPONSES_MAX = 128;
const BYTES_MAX = 2 ** 25;

export interface CachedResponse {
  /** Its body is parsed for each result, so that callers may change what they get. */
  answer: Answer;
  meta: Meta;
  /** In milliseconds of the clock. */
  received: number;
  /** Until then, no request is needed. */
  expires: number;
  /** Whether the server allows caching it. */
  mayBeKept: boolean;
}

/** The least recently used response is removed first. */
export class ResponseCache {
  readonly #responses = new Map<string, CachedResponse>();
  #bytes = 0;

  get(url: string): CachedResponse | undefined {
    const found = this.#take(url);
    if (found) this.put(url, found);
    return found;
  }

  put(url: string, response: CachedResponse): void {
    this.#take(url);
    if (response.answer.bytes > BYTES_MAX) return;
    this.#responses.set(url, response);
    this.#bytes += response.answer.bytes;
    for (const oldest of this.#responses.keys()) {
      if (this.#responses.size <= RESPONSES_MAX && this.#bytes <= BYTES_MAX) break;
      this.#take(oldest);
    }
  }

  #take(url: string): CachedResponse | undefined {
    const found = this.#responses.get(url);
    if (found && this.#responses.delete(url)) this.#bytes -= found.answer.bytes;
    return found;
  }
}

const number = (headers: Headers, name: string) => (headers.has(name) ? Number(headers.get(name)) : null);

/** The metadata of a response and of the key. */
export const metaOf = (headers: Headers): Meta => ({
  request_id: requestId(headers),
  etag: headers.get("etag"),
  from_cache: false,
  requests_remaining: number(headers, "x-requests-remaining"),
  requests_used: number(headers, "x-requests-used"),
  cursor: headers.get("x-cursor"),
});

export function responseOf(answer: Answer, now: number): CachedResponse {
  const { headers } = answer;
  const control = headers.get("cache-control") ?? "";
  const maxAge = +(/\bmax-age=(\d+)/i.exec(control)?.[1] ?? 0);
  const expires = now + (maxAge - (number(headers, "age") ?? 0)) * 1000;
  return { answer, meta: metaOf(headers), received: now, expires, mayBeKept: !/\bno-store\b/i.test(control) };
}

/** The body of `held` with the headers of a 304. */
export function renewed(held: CachedResponse, answer: Answer, now: number): CachedResponse {
  const { meta, ...times } = responseOf(answer, now);
  const { etag, cursor } = held.meta;
  return { ...times, answer: held.answer, meta: { ...meta, etag: meta.etag ?? etag, cursor: meta.cursor ?? cursor } };
}

export function isFresh({ received, expires }: CachedResponse, now: number): boolean {
  // After the clock was set back, nothing is fresh.
  return received <= now && now < expires;
}
