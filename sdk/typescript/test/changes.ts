/** The scenarios of `sdk/scenarios.json` about changes: streams, and lists since a cursor. */

import assert from "node:assert/strict";

import * as linesman from "linesman-client";
import { Linesman, LinesmanError } from "linesman-client";
import type { Changes, Update } from "linesman-client";

import { failure, proxied, setting } from "./support.js";
import type { Seen, Step } from "./support.js";

const HEADERS = { "Content-Type": "text/event-stream" };

type Block = [event: string, data: unknown];

/** A response with these events. */
function answer(...blocks: Block[]): Step {
  const texts = blocks.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  return { status: 200, headers: HEADERS, body: `retry: 2000\n${texts.join("")}` };
}

const hello = (resumed = false): Block => ["hello", { stream: "str_1", resumed, mode: "publication" }];

const snapshot = (ids: string[], channel = "odds"): Block => {
  const records = ids.map((id) => ({ id, last_update: "2026-11-14T23:38:00Z" }));
  return ["snapshot", { channel, sport: "mma", part: 1, parts: 1, records }];
};

const cut = (cursor: string): Block => ["cut", { cursor, at: "2026-11-14T23:38:00.000Z", published: true }];

const end = (code: string, retry_after_s = 0): Block => ["end", { code, message: "for people", retry_after_s }];

const DONE = answer(hello(true), end("done"));

const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();

const known = ({ state }: Changes) => [...state.odds.keys()].sort();

const cursors = (seen: Seen[]) => seen.map(({ headers }) => headers["last-event-id"] ?? null);

async function all(changes: Changes): Promise<Update[]> {
  const updates: Update[] = [];
  for await (const update of changes) updates.push(update);
  return updates;
}

async function next(changes: Changes): Promise<Update> {
  const { value } = await changes.next();
  return value ?? assert.fail("the stream has ended");
}

const byId = (records: object[], id: string) =>
  new Map(records.map((record) => [(record as Record<string, string>)[id], record]));

export const changes: Record<string, () => Promise<void>> = {
  async stream_folds_to_the_lists() {
    const client = new Linesman({ cache: false });
    const sports = ["boxing"];
    // Three past hours: the stream ends by itself.
    const past = client.stream({
      sports, channels: ["odds", "scores", "events"], market: "moneyline", since: ago(5), until: ago(2),
      freshness: "records",
    });
    let deltas = 0;
    for await (const { cut, events, reset } of past) {
      assert.deepEqual([cut.published, reset, cut.cursor], [true, null, past.cursor]);
      deltas += events.filter(({ event }) => event === "delta").length;
      const then = { as_of: cut.at, limit: 500 };
      const odds = await client.odds("boxing", { market: "moneyline", ...then }).toArray();
      assert.deepEqual(past.state.odds, byId(odds, "id"));
      assert.deepEqual(past.state.scores, byId(await client.scores("boxing", then).toArray(), "event_id"));
      assert.deepEqual(past.state.events, byId(await client.events("boxing", then).toArray(), "id"));
    }
    assert(deltas > 0 && past.state.odds.size > 0);
    // And from now on.
    const now = client.stream({ sports, bookmaker: "fanduel", heartbeat: 5 });
    for await (const { cut, events } of now) {
      assert.deepEqual(events.slice(0, 2).map(({ event }) => event), ["hello", "snapshot"]);
      const odds = await client.odds("boxing", { bookmaker: "fanduel", as_of: cut.at, limit: 500 }).toArray();
      assert.deepEqual(known(now), odds.map(({ id }) => id).sort());
      break;
    }
  },

  async stream_resumes_after_a_lost_connection() {
    const removed = [{ id: "odd_1", event_id: "evt_1", reason: "no_prices" }];
    const delta: Block = ["delta", { channel: "odds", sport: "mma", upserts: [{ id: "odd_3" }], removed }];
    const touched = { "2026-11-14T23:39:00Z": ["odd_2", "odd_unknown"] };
    const script: Step[] = [
      { ...answer(hello(), snapshot(["odd_1", "odd_2"]), cut("c1"), snapshot(["odd_9"])), broken: true },
      { drop: true },
      answer(hello(true), delta, ["fresh", { sport: "mma", sources: [], touched }], cut("c2")),
      DONE,
    ];
    const { client, clock, seen } = await proxied({ script });
    clock.chance = 0.5;
    const changes = client.stream({ sports: "mma" });
    const first = await next(changes);
    assert.deepEqual(known(changes), ["odd_1", "odd_2"]);
    await next(changes);
    assert.deepEqual(known(changes), ["odd_2", "odd_3"]);
    assert.equal(changes.state.odds.get("odd_2")?.last_update, "2026-11-14T23:39:00Z");
    assert.equal((first.events[1] as any).data.records[1].last_update, "2026-11-14T23:38:00Z");
    // The server's `retry`, then a retry of the request.
    assert.deepEqual(clock.waits, [2, 0.5]);
    assert.deepEqual([(await all(changes)).length, changes.cursor], [0, "c2"]);
    assert.deepEqual(cursors(await seen()), [null, "c1", "c1", "c2"]);

    const start: Step = { ...answer(hello(), snapshot(["odd_1"]), cut("c1")), broken: true };
    const lost: Step = { ...answer(hello(true), snapshot(["odd_9"])), broken: true };
    const often = await proxied({ script: [start, lost, lost, answer(hello(true), cut("c2")), DONE] });
    const others = often.client.stream();
    await next(others);
    await failure(others.next(), linesman.ConnectionFailed);
    assert.deepEqual((await all(others)).map(({ cut }) => cut.cursor), ["c2"]);
    assert.deepEqual(known(others), ["odd_1"]);
    assert.deepEqual(cursors(await often.seen()), [null, "c1", "c1", "c1", "c2"]);
    // Leaving a loop closes the connection; reading on opens another.
    const left = await proxied({ script: [start, answer(hello(true), cut("c2")), DONE] });
    const changing = left.client.stream();
    for await (const _ of changing) break;
    assert.equal((await next(changing)).cut.cursor, "c2");
    assert.deepEqual(cursors(await left.seen()), [null, "c1"]);
    // A signal ends the stream with its reason.
    const controller = new AbortController();
    const signalled = new Linesman().stream({ sports: "mma", bookmaker: "fanduel" }, { signal: controller.signal });
    await next(signalled);
    const waiting = signalled.next();
    const reason = new Error("enough");
    controller.abort(reason);
    assert.equal(await failure(waiting, Error), reason);
  },

  async stream_reset_is_reported() {
    const again = answer(hello(), ["reset", { reason: "expired" }], snapshot(["odd_4"]), cut("c2"));
    const { client } = await proxied({ script: [answer(hello(), snapshot(["odd_1", "odd_2"]), cut("c1")), again, DONE] });
    const changes = client.stream();
    assert.deepEqual((await all(changes)).map(({ reset }) => reset), [null, "expired"]);
    assert.deepEqual(known(changes), ["odd_4"]);
  },

  async stream_accepts_what_is_unknown() {
    const blocks: Block[] = [["novel", [1]], ["constructor", "no event"], snapshot(["x_1"], "toString")];
    const script = [answer(hello(), ...blocks, snapshot(["odd_1"]), cut("c1")), DONE];
    const changes = (await proxied({ script })).client.stream();
    const [update] = await all(changes);
    assert.deepEqual(update?.events.filter(({ event }) => event === "other"), [
      { event: "other", name: "novel", data: "[1]" },
      { event: "other", name: "constructor", data: '"no event"' },
    ]);
    assert.deepEqual([update?.events.length, known(changes)], [5, ["odd_1"]]);
    const { client } = await proxied({ unknown: ["fields", "values"] });
    const past = client.stream({ sports: ["boxing"], since: ago(5), until: ago(2) });
    for (const { cut } of await all(past)) assert.deepEqual((cut as any).unknown_field, { new: true });
    assert(past.state.odds.size > 0);
    for (const record of past.state.odds.values()) {
      assert.equal(record.market, "unknown_value");
      assert.deepEqual((record.outcomes[0] as any).unknown_field, { new: true });
    }
  },

  async stream_is_bounded() {
    const huge: Step = { ...answer(), body: "x".repeat(65_536), repeat: 300 };
    const wrong: Step[] = [
      huge,
      { ...huge, body: `data: ${"x".repeat(65_000)}\n` },
      { ...answer(), body: "event: cut\ndata: {}\n\n" },
      { ...answer(), body: "event: snapshot\ndata: [[[\n\n" },
      answer(["snapshot", { channel: "odds", records: [{ id: 1 }] }]),
      answer(["delta", { channel: "scores", upserts: [], removed: [null] }]),
      answer(["fresh", { touched: { now: [1] } }]),
      { status: 200, body: "{}" },
    ];
    const start = answer(hello(), snapshot(["odd_1"]), cut("c1"));
    const { client, seen } = await proxied({ script: [start, ...wrong, answer(hello(true), cut("c2")), DONE] });
    const changes = client.stream();
    await next(changes);
    for (const _ of wrong) assert.equal((await failure(changes.next(), LinesmanError)).code, "unexpected_response");
    assert.deepEqual((await all(changes)).map(({ cut }) => cut.cursor), ["c2"]);
    assert.deepEqual(known(changes), ["odd_1"]);
    assert.deepEqual(cursors(await seen()), [null, ...wrong.map(() => "c1"), "c1", "c2"]);
  },

  async stream_ends() {
    const script = [answer(hello(), end("unavailable", 3)), answer(hello(), snapshot([]), cut("c1"), end("slow")), DONE];
    const { client, clock } = await proxied({ script });
    const changes = client.stream();
    assert.deepEqual((await all(changes)).map(({ cut }) => cut.cursor), ["c1"]);
    assert.deepEqual([clock.waits, await all(changes)], [[3, 0.5], []]);
    // The connection was lost before the end came.
    const lost = answer(hello(), snapshot([]), cut("c1"));
    const over = await proxied({ script: [{ ...lost, broken: true }, { status: 204 }] });
    const past = over.client.stream();
    assert.deepEqual((await all(past)).map(({ cut }) => cut.cursor), ["c1"]);
    assert.deepEqual([await all(past), cursors(await over.seen())], [[], [null, "c1"]]);
    const revoked = await proxied({ script: [answer(hello(), end("authentication_failed"))] });
    const ended = revoked.client.stream();
    const error = await failure(ended.next(), linesman.AuthenticationFailed);
    assert.deepEqual([error.message, await all(ended), (await revoked.seen()).length], ["for people", [], 1]);
    // Longer than the client waits by itself; the caller decides.
    const closed = await proxied({ script: [answer(hello(), end("maintenance", 61)), DONE] });
    const later = closed.client.stream();
    assert.equal((await failure(later.next(), linesman.Maintenance)).retry_after, 61);
    assert.deepEqual(closed.clock.waits, []);
    assert.deepEqual([await all(later), closed.clock.waits], [[], [61]]);
    await failure(new Linesman().stream({ sports: ["chess"] }).next(), linesman.SportNotFound);
  },

  async since_brings_only_changes() {
    const client = new Linesman({ cache: false });
    const filters = { market: "moneyline", bookmaker: "fanduel" };
    const { value: before } = await client.odds("boxing", { as_of: ago(5), limit: 500, ...filters }).pages().next();
    assert(before?.meta.cursor);
    const records = new Map(before.items.map((record) => [record.id, record]));
    const proxy = await proxied({}, { key: setting("LINESMAN_TEST_QUOTA_KEY") });
    const odds = proxy.client.odds("boxing", { limit: 3, ...filters });
    const delta = await odds.since(before.meta.cursor);
    assert(delta.upserts.length > 0);
    for (const record of delta.upserts) records.set(record.id, record);
    // Some came and went in between.
    for (const { id } of delta.removed) records.delete(id);
    const now = await client.odds("boxing", { limit: 500, ...filters }).toArray();
    assert.equal(now.length, records.size);
    for (const { id, outcomes } of now) assert.deepEqual(records.get(id)?.outcomes, outcomes);
    const nothing = await odds.since(delta.cursor);
    assert.deepEqual([nothing.upserts, nothing.removed], [[], []]);
    assert.equal(nothing.meta.requests_used, delta.meta.requests_used);
    const [first, second] = await proxy.seen();
    assert.deepEqual([first?.status, second?.status], [200, 204]);
    assert.match(first?.target ?? "", /since=/);
    assert.doesNotMatch(first?.target ?? "", /limit/);
    const expired = { error: { code: "cursor_expired", message: "for people", request_id: "req_1" } };
    const script = [{ status: 410, body: JSON.stringify(expired) }, { status: 200, body: "[]" }];
    const scores = (await proxied({ script })).client.scores("mma");
    await failure(scores.since("A1"), linesman.CursorExpired);
    assert.equal((await failure(scores.since("A1"), LinesmanError)).code, "unexpected_response");
  },
};
