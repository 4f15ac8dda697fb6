/** Requests with a secret in one header: timeouts, retries, errors. It does not know the API's operations. */

import { errorOf, readAnswer } from "./answer.js";
import type { Answer } from "./answer.js";
import { ConnectionFailed, InvalidConfiguration, LinesmanError } from "./error.js";

export const VERSION = "0.1.0";

const BACKOFF_MAX_S = 8;

/** Time and random numbers, replaced in tests. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** At least 0 and below 1. */
  random(): number;
}

export interface HttpOptions {
  /** The `fetch` to use instead of the global one. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Headers to add to every request, for example `X-Sandbox-Fault`. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Retries after the first attempt; 2 unless set. */
  maxRetries?: number | undefined;
  /** The maximum wait in seconds before a retry; if the server asks for more, the call fails. 60 unless set. */
  maxWait?: number | undefined;
  /** Seconds for one attempt, its body included; 30 unless set. */
  timeout?: number | undefined;
  /** Accept a secret in a web page, where every visitor can read it. */
  allowBrowser?: boolean | undefined;
  clock?: Clock | undefined;
}

export interface CallOptions {
  /** Ends the call, its waits included. */
  signal?: AbortSignal | undefined;
}

/** A successful response whose body is read in pieces. */
export interface Opened {
  response: Response;
  /** The next piece, or null at the end. Without a byte for `silence` seconds plus the timeout it is lost. */
  read(silence: number): Promise<Uint8Array | null>;
  close(): void;
}

export class Http {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #options: HttpOptions;
  readonly clock: Clock;

  /** `secret` is the value of the header `name`, or empty for none. */
  constructor(url: string, name: string, secret: string, options: HttpOptions) {
    this.#base = baseOf(url);
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    const inPage = "document" in globalThis;
    // A browser sets its own User-Agent; sending another one needs a permission across origins.
    const agent = inPage ? {} : { "User-Agent": `linesman-client-typescript/${VERSION}` };
    this.#headers = { ...options.headers, ...agent };
    if (!secret) return;
    if (inPage && /^(sk_live_|Bearer )/.test(secret) && !options.allowBrowser) {
      throw new InvalidConfiguration(
        "a page shows its secrets: use a sandbox key, a server of yours, or allowBrowser: true",
      );
    }
    // The error of `fetch` would contain the value.
    if (!/^[\x21-\x7e]+( [\x21-\x7e]+)?$/.test(secret)) {
      throw new InvalidConfiguration(`the value for ${name} cannot be sent in a header`);
    }
    this.#headers[name] = secret;
  }

  /** The address of a path below the server's. */
  url(path: string): string {
    return this.#base + path;
  }

  /** The maximum wait before a retry, in seconds. */
  get maxWait(): number {
    return this.#options.maxWait ?? 60;
  }

  /** Sends a request until it succeeds, fails with an error that is not temporary, or has failed too often. */
  send(
    path: string, init: RequestInit, isTemporary: (error: LinesmanError) => boolean, { signal }: CallOptions,
  ): Promise<Answer> {
    return this.#retry(isTemporary, signal, async () => {
      const limit = AbortSignal.timeout(this.#timeout * 1000);
      const answer = await readAnswer(await this.#fetch(path, init, signal, limit));
      if ((answer.status >= 200 && answer.status < 300) || answer.status === 304) return answer;
      throw errorOf(answer);
    });
  }

  /** Opens an answer that is read in pieces, with the retries of a read. */
  open(path: string, headers: Record<string, string>, { signal }: CallOptions): Promise<Opened> {
    return this.#retry(isTemporaryRead, signal, () => {
      const controller = new AbortController();
      /** Ends the connection if `call` takes longer than these seconds. */
      const within = async <Value>(seconds: number, call: () => Promise<Value>) => {
        const late = new Error("timeout");
        const timer = setTimeout(() => controller.abort(late), (seconds + this.#timeout) * 1000);
        return this.#caught(signal, call).finally(() => clearTimeout(timer));
      };
      return within(0, async () => {
        const init: RequestInit = { headers, cache: "no-store" };
        const response = await this.#fetch(path, init, signal, controller.signal);
        if (!response.ok) throw errorOf(await readAnswer(response));
        const reader = response.body?.getReader();
        const read = async () => (await reader?.read())?.value ?? null;
        return { response, read: (silence: number) => within(silence, read), close: () => controller.abort() };
      });
    });
  }

  get #timeout(): number {
    return this.#options.timeout ?? 30;
  }

  async #retry<Value>(
    isTemporary: (error: LinesmanError) => boolean, signal: AbortSignal | undefined, attempt: () => Promise<Value>,
  ): Promise<Value> {
    for (let retries = 0; ; retries++) {
      try {
        return await this.#caught(signal, attempt);
      } catch (error) {
        const isLast = retries >= (this.#options.maxRetries ?? 2);
        if (!(error instanceof LinesmanError && isTemporary(error)) || isLast) throw error;
        const { least, wait } = pause(retries, error.retry_after, this.clock.random());
        if (least > this.maxWait) throw error;
        await this.clock.sleep(wait * 1000, signal);
      }
    }
  }

  #fetch(path: string, init: RequestInit, signal: AbortSignal | undefined, limit: AbortSignal): Promise<Response> {
    const { fetch = (input, rest) => globalThis.fetch(input, rest) } = this.#options;
    return fetch(this.url(path), {
      ...init,
      headers: { ...this.#headers, ...init.headers },
      // Otherwise `fetch` would send the key to any host that a redirect names.
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
  }

  /** Converts failures of `fetch` and bodies to errors of this package; the caller's signal keeps its reason. */
  async #caught<Value>(signal: AbortSignal | undefined, call: () => Promise<Value>): Promise<Value> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof LinesmanError) throw error;
      signal?.throwIfAborted();
      throw new ConnectionFailed(`no answer from ${this.#base}: ${reason(error)}`, error);
    }
  }
}

/** Reads LINESMAN_URL and LINESMAN_KEY, if the runtime has an environment. */
export function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

const systemClock: Clock = {
  now: Date.now,
  random: Math.random,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const abort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    }),
};

function baseOf(text: string): string {
  try {
    // In a page, an address may be relative to it.
    const url = new URL(text, (globalThis as { location?: { href: string } }).location?.href);
    const rest = url.search + url.hash + url.username + url.password;
    if (/^https?:$/.test(url.protocol) && !rest) return url.href.replace(/\/+$/, "");
  } catch {
    // Not an address at all.
  }
  throw new InvalidConfiguration("the url must be http(s), without user, password, query and fragment");
}

/** Whether a read that failed with this error may be repeated. */
export function isTemporaryRead(error: LinesmanError): boolean {
  // A used-up quota is not restored by waiting, whatever status a proxy sends.
  if (error.status === 429 || error.code === "quota_exceeded") return error.code === "rate_limited";
  return error instanceof ConnectionFailed || [500, 502, 503, 504].includes(error.status ?? 0);
}

/** The wait before a retry in seconds, without the random part. */
export function backoff(retries: number): number {
  return Math.min(0.5 * 2 ** retries, BACKOFF_MAX_S);
}

/** The minimum wait in seconds, and one with a random part, so that clients do not all return at once. */
function pause(retries: number, retryAfter: number | null, random: number): { least: number; wait: number } {
  if (retryAfter !== null) return { least: retryAfter, wait: retryAfter * (1 + random / 10) };
  const least = backoff(retries);
  return { least, wait: least * (0.75 + random / 2) };
}

/** The text of an error and of its cause: Node's own text is only "fetch failed". */
function reason(error: unknown): string {
  const { name, message, cause } = error as Error;
  const detail = cause instanceof Error ? cause.message || (cause as { code?: string }).code : undefined;
  return detail || message || name;
}
