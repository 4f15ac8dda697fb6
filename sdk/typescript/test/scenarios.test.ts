/** The scenarios of `sdk/scenarios.json`, which every client has, against the running program. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { gunzipSync } from "node:zlib";

import * as linesman from "linesman-client";
import { Feed, Linesman, LinesmanError } from "linesman-client";
import type { FeedMessage } from "linesman-client";

import { runDocs, runExamples } from "./examples.js";
import { changes } from "./changes.js";
import type { Step } from "./support.js";
import { FakeClock, closedAddress, failure, json, proxied, readJson, scripted, setting } from "./support.js";

const openapi = await readJson("../../openapi.json");

const scenarios: Record<string, () => Promise<void>> = {
  async settings_from_environment() {
    assert((await new Linesman().sports().toArray()).length > 0);
    const { calls, fetch } = scripted(json({}), json({}));
    await new Linesman({ fetch }).status();
    await new Linesman({ fetch, url: "https://odds.example/api/", key: "sk_test_argument" }).status();
    assert.deepEqual(calls.map(({ url }) => url), [
      `${setting("LINESMAN_URL")}/v1/status`,
      "https://odds.example/api/v1/status",
    ]);
    const keys = calls.map(({ init }) => new Headers(init.headers).get("x-api-key"));
    assert.deepEqual(keys, [setting("LINESMAN_KEY"), "sk_test_argument"]);
  },

  async key_in_header_only() {
    const secrets = ["sk_test_secret", "fk_secret"];
    const { client, url, seen } = await proxied({}, { key: "sk_test_secret", maxRetries: 0 });
    const feed = new Feed(url, "fk_secret", { maxRetries: 0 });
    const lost = { url: await closedAddress(), maxRetries: 0 };
    const outputs: unknown[] = [client, feed, client.odds("mma")];
    for (const call of [
      () => client.status(),
      () => feed.push([{ type: "heartbeat", bookmaker: "fanduel" }]),
      () => new Linesman({ ...lost, key: "sk_test_secret" }).status(),
      () => new Feed(lost.url, "fk_secret", lost).push([{ type: "heartbeat", bookmaker: "fanduel" }]),
    ]) {
      outputs.push(await failure(call(), LinesmanError));
    }
    for (const make of [
      () => new Linesman({ key: "sk_test_secret\nX: y" }),
      () => new Feed(url, "fk_secret\u2028"),
      () => new Linesman({ url: "http://sk_test_secret:fk_secret@127.0.0.1" }),
      () => new Linesman({ url: "sk_test_secret" }),
    ]) {
      assert.throws(make, (error) => outputs.push(error) > 0);
    }
    for (const output of outputs) {
      const shown = [inspect(output, { depth: 9, showHidden: true }), JSON.stringify(output), String(output)].join();
      for (const secret of secrets) assert(!shown.includes(secret), shown);
    }
    const [read, pushed] = await seen();
    assert.equal(read?.headers["x-api-key"], "sk_test_secret");
    assert.equal(pushed?.headers["authorization"], "Bearer fk_secret");
    for (const request of [read, pushed]) {
      const { "x-api-key": _, authorization: __, ...others } = request?.headers ?? {};
      const rest = JSON.stringify([others, request?.target, request?.body]);
      for (const secret of secrets) assert(!rest.includes(secret), rest);
    }
  },

  async user_agent_names_client() {
    const { client, seen } = await proxied({});
    await client.status();
    const { version } = await readJson("package.json");
    assert.equal((await seen())[0]?.headers["user-agent"], `linesman-client-typescript/${version}`);
  },

  async every_operation_has_a_method() {
    const client = new Linesman();
    const [event] = await client.events("mma", { max_items: 1 }).toArray();
    assert(event);
    const paths = new Set<string>();
    const watching = new Linesman({
      fetch: async (url, init) => {
        const path = new URL(url).pathname
          .replace("/mma/", "/{sport_key}/").replace(event.id, "{event_id}")
          .replace("odds/2026-11-14", "{table}/{date}");
        paths.add(path);
        return await fetch(url, init);
      },
    });
    for (const name of Object.getOwnPropertyNames(Linesman.prototype)) {
      if (name === "constructor") continue;
      const takesSport = !["sports", "books", "status", "history", "stream"].includes(name);
      const args = takesSport ? ["mma", ...(["event", "explain", "price_path"].includes(name) ? [event.id] : [])] : [];
      if (name === "export") {
        await assert.rejects(watching.export("mma", "odds", "2026-11-14"), linesman.Forbidden);
        continue;
      }
      const result = (watching as any)[name](...args);
      // The first page is enough: very many events have started.
      const reading = result instanceof linesman.List ? result.pages() : result;
      if (reading instanceof Promise) await reading;
      else for await (const _ of reading) break;
    }
    const operations = Object.entries<object>(openapi.paths).filter(([path]) => path.startsWith("/v1"));
    assert(operations.every(([, methods]) => "get" in methods));
    assert.deepEqual([...paths].sort(), operations.map(([path]) => path).sort());
  },

  async export_is_written_in_pieces() {
    const target = "/v1/sports/mma/export/odds/2026-11-14";
    const headers = { ETag: '"a"', Link: `<${target}?lineage=3>; rel="next"` };
    const whole: Step = { status: 200, headers, body: "PAR1".repeat(1000), repeat: 300 };
    const busy: Step = { status: 503, headers: { "Retry-After": "1" }, body: "{}" };
    const { client, seen } = await proxied({ script: [busy, whole, { ...whole, broken: true }] });
    const file = await client.export("mma", "odds", "2026-11-14", { lineage: 2 });
    let bytes = 0;
    for (let piece; (piece = await file.read()); ) bytes += piece.byteLength;
    assert.equal(bytes, 1_200_000);
    assert.equal(file.lineage, 3);
    assert.equal(file.meta.etag, '"a"');
    assert.deepEqual((await seen()).map((one) => one.target), Array(2).fill(`${target}?lineage=2`));
    const lost = await client.export("mma", "odds", "2026-11-14");
    await assert.rejects(async () => {
      while (await lost.read());
    }, linesman.ConnectionFailed);
    await assert.rejects(new Linesman().export("mma", "odds", "2026-11-14"), linesman.Forbidden);
  },

  async lists_are_joined_by_commas() {
    const { client, seen } = await proxied({});
    const regions = ["us", "uk"] as const;
    await client.odds("mma", { regions, bookmaker: undefined, limit: 1, max_items: 1 }).toArray();
    const query = new URL((await seen())[0]?.target ?? "", "http://x").searchParams;
    assert.deepEqual([...query], [["regions", "us,uk"], ["limit", "1"]]);
  },

  async pages_equal_one_long_page() {
    const client = new Linesman({ cache: false });
    const longPage = async () => {
      for await (const page of client.odds("mma", { market: "moneyline", limit: 500 }).pages()) return page;
      assert.fail("there is no page");
    };
    let before, pages, after;
    do {
      // A snapshot may be published meanwhile; within one, both are the same.
      before = await longPage();
      pages = await client.odds("mma", { market: "moneyline", limit: 7, max_items: 500 }).toArray();
      after = await longPage();
    } while (before.meta.etag !== after.meta.etag);
    assert(before.items.length > 14);
    assert.deepEqual(pages, before.items);
    const bouts = await client.odds("mma", { group_by: "bout", limit: 5, max_items: 12 }).toArray();
    assert.deepEqual([bouts.length, new Set(bouts.map((bout) => bout.home)).size], [12, 12]);
  },

  async max_items_ends_early() {
    const { client, seen } = await proxied({});
    assert.equal((await client.events("mma", { limit: 3, max_items: 6 }).toArray()).length, 6);
    assert.equal((await seen()).length, 2);
    assert.equal((await client.events("mma", { max_items: 0 }).toArray()).length, 0);
    assert.equal((await seen()).length, 2);
  },

  async pages_one_by_one() {
    const { client, seen } = await proxied({});
    const pages = client.best("mma", { limit: 2 }).pages();
    const ids = new Set<string | null>();
    for (let count = 1; count <= 3; count += 1) {
      const { value: page } = await pages.next();
      assert(page);
      assert.deepEqual(page.items, page.data.lines);
      assert.equal(page.items.length, 2);
      ids.add(page.meta.request_id);
      assert.equal((await seen()).length, count);
    }
    assert.equal(ids.size, 3);
  },

  async retry_after_is_respected() {
    for (const chance of [0, 0.999]) {
      const asked: number[] = [];
      const recorded = async (url: string, init: RequestInit) => {
        const answer = await fetch(url, init);
        asked.push(Number(answer.headers.get("retry-after")));
        return answer;
      };
      const script = [{ fault: "rate_limited" }, { fault: "unavailable" }];
      const { client, clock, seen } = await proxied({ script }, { fetch: recorded });
      clock.chance = chance;
      const { data } = await client.event("mma", await anEvent());
      assert.equal(data.sport_key, "mma");
      assert.deepEqual((await seen()).map(({ status }) => status), [429, 503, 200]);
      assert.equal(asked[1], 30);
      assert.deepEqual(clock.waits, asked.slice(0, 2).map((seconds) => (seconds * (1 + chance / 10) * 1000) / 1000));
    }
  },

  async backoff_without_retry_after() {
    for (const [chance, factor] of [[0, 0.75], [0.5, 1]] as const) {
      const { client, clock, seen } = await proxied({ script: [{ status: 500 }, { status: 502 }, { status: 504 }] });
      clock.chance = chance;
      const error = await failure(client.status(), LinesmanError);
      assert.equal(error.status, 504);
      assert.deepEqual(clock.waits, [0.5 * factor, factor]);
      assert.equal((await seen()).length, 3);
    }
  },

  async lost_connection_is_retried() {
    const once = await proxied({ script: [{ drop: true }, { drop: true }] });
    await once.client.status();
    assert.equal(once.clock.waits.length, 2);
    const always = await proxied({ script: [{ drop: true }, { drop: true }, { drop: true }] });
    const error = await failure(always.client.status(), linesman.ConnectionFailed);
    assert.deepEqual([error.code, error.status], ["connection_failed", null]);
    assert.equal((await always.seen()).length, 3);
  },

  async quota_exceeded_fails_at_once() {
    const { client, clock, seen } = await proxied({ script: [{ fault: "quota_exceeded" }] });
    const error = await failure(client.books().toArray(), linesman.QuotaExceeded);
    assert((error.retry_after ?? 0) > 0);
    assert.deepEqual([clock.waits, (await seen()).length], [[], 1]);
  },

  async long_wait_fails_at_once() {
    const { client, clock, seen } = await proxied(
      { script: [{ status: 503, headers: { "Retry-After": "61" } }, { fault: "maintenance" }] }, {},
    );
    assert.equal((await failure(client.books().toArray(), LinesmanError)).retry_after, 61);
    await client.books().toArray();
    assert.equal(clock.waits.length, 1);
    assert.deepEqual((await seen()).map(({ status }) => status), [503, 503, 200]);
  },

  async cached_response_needs_no_request() {
    const key = setting("LINESMAN_TEST_QUOTA_KEY");
    const { client, clock, seen } = await proxied({ headers: { "Cache-Control": "private, max-age=20" } }, { key });
    const first = await client.coverage("mma");
    clock.time += 19_999;
    const second = await client.coverage("mma");
    assert.deepEqual(second.data, first.data);
    assert.deepEqual([first.meta.from_cache, second.meta], [false, { ...first.meta, from_cache: true }]);
    assert.equal((await seen()).length, 1);
    const status = await new Linesman({ key }).status();
    assert.equal(status.meta.requests_used, first.meta.requests_used);
    // Callers may change what they get.
    second.data.books = [];
    assert.deepEqual((await client.coverage("mma")).data, first.data);
  },

  async unchanged_response_is_reused() {
    const { client, clock, seen } = await proxied({
      script: [{}, { status: 304, headers: { "x-request-id": "req_second" } }],
      headers: { "Cache-Control": "private, max-age=20" },
    });
    const first = await client.coverage("mma");
    clock.time += 20_000;
    const second = await client.coverage("mma");
    assert.deepEqual(second.data, first.data);
    const { etag, request_id, from_cache } = second.meta;
    assert.deepEqual([etag, request_id, from_cache], [first.meta.etag, "req_second", true]);
    const [without, conditional] = await seen();
    assert.equal(without?.headers["if-none-match"], undefined);
    assert.equal(conditional?.headers["if-none-match"], etag);
    clock.time += 19_999;
    await client.coverage("mma");
    assert.equal((await seen()).length, 2);
    // The program itself answers 304.
    const books = await proxied({ headers: { "Cache-Control": "private, max-age=0" } });
    const all = await books.client.books().toArray();
    assert.deepEqual(await books.client.books().toArray(), all);
    assert.deepEqual((await books.seen()).map(({ status }) => status), [200, 304]);
  },

  async status_is_never_cached() {
    const { client, seen } = await proxied({ headers: { "Cache-Control": "max-age=20", ETag: '"x"' } });
    await client.status();
    assert.equal((await client.status()).meta.from_cache, false);
    assert.deepEqual((await seen()).map(({ headers }) => headers["if-none-match"]), [undefined, undefined]);
  },

  async cache_can_be_disabled() {
    const { client, seen } = await proxied({ headers: { "Cache-Control": "private, max-age=20" } }, { cache: false });
    await client.books().toArray();
    await client.books().toArray();
    assert.deepEqual((await seen()).map(({ headers }) => headers["if-none-match"]), [undefined, undefined]);
  },

  async cache_is_bounded() {
    const answer = (bytes = 2) => json("x".repeat(bytes - 2), { headers: { "cache-control": "max-age=60" } });
    const asks = async (count: number, bytes?: number) => {
      const clock = new FakeClock();
      let requests = 0;
      const fetch = async () => ((requests += 1), answer(bytes));
      const client = new Linesman({ clock, fetch });
      for (let number = 0; number < count; number += 1) await client.event("mma", `${number}`);
      await client.event("mma", "0");
      await client.event("mma", `${count}`);
      const before = requests;
      await client.event("mma", "0");
      assert.equal(requests, before);
      await client.event("mma", "1");
      return requests - count;
    };
    assert.equal(await asks(127), 1, "128 responses are kept");
    assert.equal(await asks(128), 2, "the one unused longest leaves");
    assert.equal(await asks(3, 8 * 1024 * 1024), 1, "32 MiB are kept");
    assert.equal(await asks(4, 8 * 1024 * 1024), 2, "and no more");
  },

  async errors_have_types() {
    const codes: string[] = openapi.components.schemas.Error.properties.error.properties.code.enum;
    for (const code of codes) {
      const name = code.replace(/(^|_)(.)/g, (_, __, letter) => letter.toUpperCase());
      const Type = (linesman as any)[name];
      assert(Type?.prototype instanceof LinesmanError, `there is no type ${name}`);
      const body = { error: { code, message: "why", param: "limit", request_id: "req_1" } };
      const headers = { "x-request-id": "req_1", "retry-after": "3600" };
      const { fetch } = scripted(json(body, { status: 418, headers }));
      const error = await failure(new Linesman({ fetch }).status(), Type as typeof LinesmanError);
      assert.equal(error.name, name);
      const { message, param, request_id, status, retry_after } = error;
      assert.deepEqual(
        { code: error.code, message, param, request_id, status, retry_after },
        { code, message: "why", param: "limit", request_id: "req_1", status: 418, retry_after: 3600 },
      );
    }
    const error = await failure(new Linesman().odds("mma", { limit: 501 }).toArray(), linesman.InvalidParameter);
    assert.deepEqual([error.param, error.status], ["limit", 400]);
    assert.match(error.request_id ?? "", /^req_/);
  },

  async unknown_code_gives_base_type() {
    const { client } = await proxied({ unknown: ["codes"] });
    const error = await failure(client.odds("curling").toArray(), LinesmanError);
    assert.deepEqual([error.constructor, error.code, error.status], [LinesmanError, "unknown_code", 404]);
    const page = await proxied({ script: [{ status: 403, body: "<html>no</html>" }] });
    const other = await failure(page.client.status(), LinesmanError);
    assert.deepEqual([other.constructor, other.code, other.status], [LinesmanError, "unexpected_response", 403]);
    for (const code of ["constructor", "toString"]) {
      const { fetch } = scripted(json({ error: { code, message: "" } }, { status: 400 }));
      assert.equal((await failure(new Linesman({ fetch }).status(), LinesmanError)).constructor, LinesmanError);
    }
  },

  async unknown_fields_and_values_are_accepted() {
    const { client, url } = await proxied({ unknown: ["fields", "values"] });
    const [record] = await client.odds("mma", { max_items: 1 }).toArray();
    assert.equal(record?.market, "unknown_value");
    assert.deepEqual((record as any).unknown_field, { new: true });
    assert.equal((await client.status()).data.status, "unknown_value");
    const [line] = await client.fair("mma", { max_items: 1 }).toArray();
    assert.deepEqual((line as any).unknown_field, { new: true });
    const feed = new Feed(url, setting("LINESMAN_TEST_FEED_TOKEN"));
    const receipt = await feed.push([{ type: "remove", ref: "nothing" }]);
    assert.deepEqual((receipt.rejected[0] as any).unknown_field, { new: true });
  },

  async results_carry_meta() {
    const { meta } = await new Linesman().coverage("mma");
    assert.match(meta.request_id ?? "", /^req_/);
    assert.match(meta.etag ?? "", /^".+"$/);
    assert.equal(meta.from_cache, false);
    assert.equal(meta.cursor, null);
    assert((meta.requests_remaining ?? 0) > 0 && (meta.requests_used ?? 0) > 0);
  },

  ...changes,

  async push_counts_lines_of_whole_input() {
    const { url, seen } = await proxied({});
    const feed = new Feed(url, setting("LINESMAN_TEST_FEED_TOKEN"));
    const bad = [1, 5_000, 5_001, 12_000];
    const messages = function* (): Generator<FeedMessage> {
      for (let line = 1; line <= 12_000; line += 1) {
        yield bad.includes(line) ? { type: "remove", ref: `no-${line}` } : { type: "heartbeat", bookmaker: "fanduel" };
      }
    };
    const receipt = await feed.push(messages());
    assert.deepEqual(receipt.rejected.map(({ line, code }) => [line, code]), bad.map((line) => [line, "unknown_ref"]));
    assert.equal(receipt.rejected_total, 4);
    assert.equal(receipt.accepted + receipt.unchanged + receipt.superseded, 11_996);
    const requests = await seen();
    assert(requests.every(({ headers }) => headers["content-encoding"] === "gzip"));
    const bodies = requests.map(({ body }) => gunzipSync(Buffer.from(body, "base64")).toString());
    assert.deepEqual(bodies.map((body) => body.trim().split("\n").length), [5_000, 5_000, 2_000]);
  },

  async push_retries_unavailable() {
    const { url, clock, seen } = await proxied({ script: [{ status: 503, headers: { "Retry-After": "2" } }] });
    const feed = new Feed(url, setting("LINESMAN_TEST_FEED_TOKEN"), { clock });
    const receipt = await feed.push([{ type: "heartbeat", bookmaker: "fanduel" }]);
    assert.equal(receipt.rejected_total, 0);
    assert.deepEqual(clock.waits, [2]);
    const bodies = (await seen()).map(({ body }) => body);
    assert.deepEqual([bodies.length, bodies[0]], [2, bodies[1]]);
  },

  async examples_run() {
    assert((await runExamples()) >= 8);
    assert((await runDocs()) > 30);
  },
};

async function anEvent(): Promise<string> {
  const [event] = await new Linesman().events("mma", { max_items: 1 }).toArray();
  return event?.id ?? assert.fail("the sandbox has no event");
}

for (const [name, run] of Object.entries(scenarios)) test(name, run);

test("the scenarios are those of every client", async () => {
  const listed: { name: string }[] = await readJson("../scenarios.json");
  assert.deepEqual(Object.keys(scenarios).sort(), listed.map(({ name }) => name).sort());
});
