/** Shared parts of the tests: the running program, proxies in front of it, and a clock that does not wait. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";

import { Linesman } from "linesman-client";
import type { Clock, LinesmanOptions } from "linesman-client";

/** The package's folder, from `build/test`. */
export const PACKAGE = new URL("../../", import.meta.url);

export async function readJson(path: string): Promise<any> {
  return JSON.parse(await readFile(new URL(path, PACKAGE), "utf8"));
}

export function setting(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set: run these tests with \`cargo xtask sdk --test\``);
  return value;
}

export class FakeClock implements Clock {
  /** In seconds. */
  readonly waits: number[] = [];
  time = Date.UTC(2027, 0, 1);
  chance = 0;

  now(): number {
    return this.time;
  }

  random(): number {
    return this.chance;
  }

  async sleep(ms: number): Promise<void> {
    this.waits.push(ms / 1000);
    this.time += ms;
  }
}

export interface Seen {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: string;
  status: number | null;
}

export interface Step {
  fault?: string;
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  repeat?: number;
  broken?: true;
  drop?: true;
}

export interface ProxyOptions {
  script?: Step[];
  unknown?: ("fields" | "values" | "codes")[];
  headers?: Record<string, string>;
}

/** A separate proxy for one test, and a client that uses it. */
export async function proxied(proxy: ProxyOptions, options: LinesmanOptions = {}) {
  const maker = `${setting("LINESMAN_TEST_PROXY")}/proxies`;
  const answer = await fetch(maker, { method: "POST", body: JSON.stringify(proxy) });
  assert.equal(answer.status, 200);
  const { url, requests } = (await answer.json()) as { url: string; requests: string };
  const clock = new FakeClock();
  const client = new Linesman({ url, clock, ...options });
  const seen = async () => (await (await fetch(requests)).json()) as Seen[];
  return { url, clock, client, seen };
}

/** A `fetch` that returns one answer after the other, and the arguments of its calls. */
export function scripted(...answers: (Response | Error)[]) {
  const calls: { url: string; init: RequestInit }[] = [];
  const fetch = async (url: string, init: RequestInit) => {
    calls.push({ url, init });
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    assert(answer, `no answer is left for ${url}`);
    return answer;
  };
  return { calls, fetch };
}

export function json(body: unknown, init: ResponseInit = {}): Response {
  return new Response(JSON.stringify(body), init);
}

/** Asserts that a call fails with an error of this type, and returns the error. */
export async function failure<Type extends Error>(
  call: Promise<unknown>, type: abstract new (...args: never[]) => Type,
): Promise<Type> {
  const error = await call.then(
    () => assert.fail("the call did not fail"),
    (reason: unknown) => reason,
  );
  assert(error instanceof type, `${String(error)} is not of the type ${type.name}`);
  return error;
}

/** An address at which nothing listens. */
export async function closedAddress(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}
