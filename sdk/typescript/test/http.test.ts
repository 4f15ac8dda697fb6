/** Cases that scenarios with the real program cannot produce: hostile answers, aborted calls, web pages. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionFailed, Feed, InvalidConfiguration, Linesman, LinesmanError } from "linesman-client";

import { FakeClock, failure, json, scripted } from "./support.js";

const url = "http://127.0.0.1:8080";
const key = "sk_test_key";

test("a redirect is not followed, so the key reaches no other host", async () => {
  const headers = { location: "https://evil.example/" };
  const { calls, fetch } = scripted(new Response(null, { status: 302, headers }));
  const error = await failure(new Linesman({ url, key, fetch }).status(), LinesmanError);
  assert.deepEqual([error.code, error.status, calls.length], ["unexpected_response", 302, 1]);
  assert.equal(calls[0]?.init.redirect, "manual");
});

test("the next page is at the same address, whatever Link says", async () => {
  const link = '<https://evil.example/steal?cursor=abc&limit=1#x>; title=n; rel=next, </first>; rel="first"';
  const { calls, fetch } = scripted(json([1], { headers: { link } }), json([2]));
  assert.deepEqual(await new Linesman({ url, key, fetch }).events("mma", { limit: 1 }).toArray(), [1, 2]);
  assert.equal(calls[1]?.url, `${url}/v1/sports/mma/events?cursor=abc&limit=1`);
});

test("a page that names itself as the next one ends the list with an error", async () => {
  const { fetch } = scripted(json([1], { headers: { link: '</v1/sports/mma/events?limit=1>; rel="next"' } }));
  const error = await failure(new Linesman({ url, key, fetch }).events("mma", { limit: 1 }).toArray(), LinesmanError);
  assert.equal(error.code, "unexpected_response");
});

test("answers that are not the API's give an error and are not cached", async () => {
  const headers = { "cache-control": "max-age=60" };
  const answers = [new Response("<html>", { headers }), json({ odds: [] }, { headers }), json(null), json([])];
  const { fetch } = scripted(...answers, new Response(null, { status: 304 }));
  const client = new Linesman({ url, key, fetch });
  for (const what of [/not JSON/, /not a list/]) {
    assert.match((await failure(client.odds("mma").toArray(), LinesmanError)).message, what);
  }
  const other = new Linesman({ url, key, fetch, cache: false });
  await failure(other.odds("mma").toArray(), LinesmanError);
  assert.deepEqual(await other.odds("mma").toArray(), []);
  assert.match((await failure(other.odds("mma").toArray(), LinesmanError)).message, /304/);
});

test("an answer without end is cut off", async () => {
  const chunk = new Uint8Array(1024 * 1024);
  let chunks = 0;
  const body = new ReadableStream({ pull: (stream) => ((chunks += 1), stream.enqueue(chunk)) });
  const { fetch } = scripted(new Response(body));
  const error = await failure(new Linesman({ url, key, fetch }).status(), LinesmanError);
  assert.equal(error.code, "unexpected_response");
  assert(chunks < 70);
});

test("Retry-After may be a date", async () => {
  const headers = { date: "Fri, 01 Jan 2027 00:00:00 GMT", "retry-after": "Fri, 01 Jan 2027 00:00:20 GMT" };
  const clock = new FakeClock();
  const { fetch } = scripted(new Response("", { status: 503, headers }), json({}));
  await new Linesman({ url, key, fetch, clock }).status();
  assert.deepEqual(clock.waits, [20]);
});

test("waits grow to eight seconds", async () => {
  const clock = new FakeClock();
  clock.chance = 0.5;
  const fetch = async () => new Response("", { status: 502 });
  await failure(new Linesman({ url, key, fetch, clock, maxRetries: 7 }).status(), LinesmanError);
  assert.deepEqual(clock.waits, [0.5, 1, 2, 4, 8, 8, 8]);
});

test("an aborted call ends with the signal's reason, also while it waits", async () => {
  const reason = new Error("enough");
  const waiting = new AbortController();
  const fetch = async () => {
    queueMicrotask(() => waiting.abort(reason));
    return new Response("", { status: 503, headers: { "retry-after": "50" } });
  };
  const options = { signal: waiting.signal };
  const client = new Linesman({ url, key, fetch });
  assert.equal(await failure(client.status(options), Error), reason);
  const hanging = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  const controller = new AbortController();
  const call = new Linesman({ url, key, fetch: hanging }).odds("mma", {}, { signal: controller.signal }).toArray();
  controller.abort(reason);
  assert.equal(await failure(call, Error), reason);
  assert.equal(await failure(client.status(options), Error), reason);
});

test("an attempt that takes too long is a lost connection", async () => {
  const hanging = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  // The timer of a timeout does not keep the process alive.
  const alive = setInterval(() => {}, 1000);
  const client = new Linesman({ url, key, fetch: hanging, timeout: 0.01, maxRetries: 0 });
  const error = await failure(client.status(), ConnectionFailed);
  clearInterval(alive);
  assert.match(error.message, /timeout/);
});

test("max_items must be a number", () => {
  const client = new Linesman({ url, key });
  for (const max_items of [-1, NaN]) assert.throws(() => client.odds("mma", { max_items }), RangeError);
});

test("ids cannot leave their place in the path", async () => {
  const { calls, fetch } = scripted(json({}));
  await new Linesman({ url, key, fetch }).event("mma", "a/b?c#d");
  assert.equal(calls[0]?.url, `${url}/v1/sports/mma/events/a%2Fb%3Fc%23d`);
});

test("a server's address must be one", () => {
  for (const wrong of ["odds.example", "ftp://a.example", "http://u:p@a.example", "http://a.example/?a=b", ""]) {
    assert.throws(() => new Linesman({ url: wrong, key }), InvalidConfiguration, wrong);
  }
});

test("a secret is not accepted in a web page, a sandbox key is", async (context) => {
  const page = globalThis as { document?: unknown; location?: unknown };
  Object.assign(page, { document: {}, location: { href: "https://odds.example/page/" } });
  context.after(() => (delete page.document, delete page.location));
  assert.throws(() => new Linesman({ url, key: "sk_live_key" }), InvalidConfiguration);
  assert.throws(() => new Feed(url, "fk_token"), InvalidConfiguration);
  new Linesman({ url, key: "sk_live_key", allowBrowser: true });
  new Linesman({ url, key });
  const { calls, fetch } = scripted(json({}));
  await new Linesman({ url: "/api", key, fetch }).status();
  assert.equal(calls[0]?.url, "https://odds.example/api/v1/status");
  assert.equal(new Headers(calls[0]?.init.headers).get("user-agent"), null);
});

test("a push that fails says what was stored before", async () => {
  const stored = { accepted: 5000, unchanged: 0, superseded: 0, rejected_total: 0, rejected: [] };
  const paused = { error: { code: "feed_paused", message: "paused", request_id: "req_1" } };
  const { fetch } = scripted(json(stored), json(paused, { status: 409 }));
  const messages = Array.from({ length: 5001 }, () => ({ type: "heartbeat", bookmaker: "fanduel" }) as const);
  const error = await failure(new Feed(url, "fk_token", { fetch }).push(messages), LinesmanError);
  assert.deepEqual([error.code, error.receipt], ["feed_paused", stored]);
});

test("a body has at most 4 MiB, and a message that is larger is rejected alone", async () => {
  const receipt = (accepted: number, line?: number) => {
    const rejected = line ? [{ line, code: "unknown_ref", message: "" }] : [];
    return json({ accepted, unchanged: 0, superseded: 0, rejected_total: rejected.length, rejected });
  };
  const { calls, fetch } = scripted(receipt(3, 2), receipt(1, 1));
  const message = (bytes: number) => ({ type: "remove", ref: "x".repeat(bytes) }) as const;
  const mib = 1024 * 1024;
  const pushed = async function* () {
    yield* [message(mib), message(mib), message(mib), message(5 * mib), message(4 * mib - 100)];
  };
  const total = await new Feed(url, "fk_token", { fetch }).push(pushed());
  assert.equal(calls.length, 2);
  const rejected = total.rejected.map(({ line, code }) => [line, code]);
  assert.deepEqual(rejected, [[2, "unknown_ref"], [4, "too_large"], [5, "unknown_ref"]]);
  assert.deepEqual([total.accepted, total.rejected_total], [4, 3]);
});

test("a receipt lists at most a thousand rejected lines", async () => {
  const rejected = Array.from({ length: 900 }, (_, line) => ({ line: line + 1, code: "invalid_json", message: "" }));
  const receipt = { accepted: 0, unchanged: 0, superseded: 0, rejected_total: 5000, rejected };
  const { fetch } = scripted(json(receipt), json(receipt));
  const messages = Array.from({ length: 10_000 }, () => ({ type: "heartbeat", bookmaker: "fanduel" }) as const);
  const total = await new Feed(url, "fk_token", { fetch }).push(messages);
  assert.deepEqual([total.rejected_total, total.rejected.length, total.rejected[999]?.line], [10_000, 1000, 5100]);
});
