/** Requests with a secret in one header: timeouts, retries, errors. It does not know the API's operations. */

import { errorOf, readAnswer } from "./answer.js";
import type { Answer } from "./answer.js";
import { ConnectionFailed, InvalidConfiguration, LinesmanError } from "./error.js";

export const VERSION = "0.1.0";

const BACKOFF_MAX_S = 8;

/** Time and chance, replaced in tests. */
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
  /** The longest wait in seconds before a retry; where the server asks for more, the call fails. 60 unless set. */
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
    if (secret === "") return;
    if (inPage && /^(sk_live_|Bearer )/.test(secret) && options.allowBrowser !== true) {
      throw new InvalidConfiguration(
        "every visitor of a web page can read its secrets: use a sandbox key, or call the API from a server of yours " +
          "(allowBrowser: true accepts this)",
      );
    }
    // `fetch` would quote the value in its own error.
    if (!/^[\x21-\x7e]+( [\x21-\x7e]+)?$/.test(secret)) {
      throw new InvalidConfiguration(`the value for ${name} has characters that a header cannot have`);
    }
    this.#headers[name] = secret;
  }

  /** The address of a path below the server's. */
  url(path: string): string {
    return this.#base + path;
  }

  /** Sends a request until it succeeds, fails with an error that `isTemporary` denies or has failed too often. */
  async send(
    url: string, init: RequestInit, isTemporary: (error: LinesmanError) => boolean, { signal }: CallOptions,
  ): Promise<Answer> {
    const { maxRetries = 2, maxWait = 60 } = this.#options;
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#attempt(url, init, signal);
      } catch (error) {
        if (!(error instanceof LinesmanError && isTemporary(error)) || retries >= maxRetries) throw error;
        const { least, wait } = pause(retries, error.retry_after, this.clock.random());
        if (least > maxWait) throw error;
        await this.clock.sleep(wait * 1000, signal);
      }
    }
  }

  async #attempt(url: string, init: RequestInit, signal: AbortSignal | undefined): Promise<Answer> {
    const { timeout = 30, fetch = (input, rest) => globalThis.fetch(input, rest) } = this.#options;
    const limit = AbortSignal.timeout(timeout * 1000);
    let answer: Answer;
    try {
      const response = await fetch(url, {
        ...init,
        headers: { ...this.#headers, ...init.headers },
        // Otherwise `fetch` sends the key to whatever host a redirect names.
        redirect: "manual",
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      answer = await readAnswer(response);
    } catch (error) {
      if (error instanceof LinesmanError) throw error;
      signal?.throwIfAborted();
      throw new ConnectionFailed(`no answer from ${this.#base}: ${reason(error)}`, error);
    }
    const { status } = answer;
    if ((status >= 200 && status < 300) || status === 304) return answer;
    throw errorOf(answer);
  }
}

/** Where LINESMAN_URL and LINESMAN_KEY are, if the runtime has an environment. */
export function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
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
  let url: URL;
  try {
    // In a page, an address may be relative to it.
    url = new URL(text, (globalThis as { location?: { href: string } }).location?.href);
  } catch {
    throw new InvalidConfiguration("the url is not an http or https address");
  }
  if (!/^https?:$/.test(url.protocol) || url.search || url.hash) {
    throw new InvalidConfiguration("the url must be an http or https address without query and fragment");
  }
  if (url.username || url.password) throw new InvalidConfiguration("the url must not contain a user and password");
  return url.href.replace(/\/+$/, "");
}

/** The least wait in seconds, and one with chance added, so that clients do not come back all at once. */
function pause(retries: number, retryAfter: number | null, random: number): { least: number; wait: number } {
  if (retryAfter !== null) return { least: retryAfter, wait: retryAfter * (1 + random / 10) };
  const backoff = Math.min(0.5 * 2 ** retries, BACKOFF_MAX_S);
  return { least: backoff, wait: backoff * (0.75 + random / 2) };
}

/** The text of an error and of its cause: Node's own text is only "fetch failed". */
function reason(error: unknown): string {
  const { name, message, cause } = error as Error;
  const detail = cause instanceof Error ? cause.message || (cause as { code?: string }).code : undefined;
  return detail || message || name;
}
