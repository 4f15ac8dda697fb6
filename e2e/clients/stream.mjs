// Follows a stream with a public client, through a restart of the server, and compares it with the list at every cut.

import assert from "node:assert/strict";

import { EventSource } from "eventsource";
import WebSocket from "ws";

const CUTS_AFTER = 3;
const PATIENCE_MS = 240_000;

const [library, baseUrl, key] = process.argv.slice(2);
const target = "/v1/stream?sports=mma&freshness=records&heartbeat=5";
const [known, cursors, hellos] = [new Map(), [], []];
let after = null;

async function expected(at) {
  for (;;) {
    try {
      return await readAll(at);
    } catch (error) {
      // The server is being restarted; a wrong answer is still a failure.
      if (error instanceof assert.AssertionError) throw error;
      await new Promise((done) => setTimeout(done, 200));
    }
  }
}

async function readAll(at) {
  const records = new Map();
  let path = `/v1/sports/mma/odds?limit=500&as_of=${at}`;
  while (path) {
    const answer = await fetch(baseUrl + path, { headers: { "X-API-Key": key } });
    // Rebuilding past publications is limited per node and per key, so clients retry.
    if (answer.status === 503) throw new Error(await answer.text());
    assert.equal(answer.status, 200);
    for (const record of await answer.json()) records.set(record.id, record);
    path = answer.headers.get("link")?.match(/<([^>]*)>; rel="next"/)?.[1];
  }
  return records;
}

async function take(event, id, data) {
  assert.notEqual(event, "reset", data.reason);
  if (event === "hello") {
    if (hellos.length) after = cursors.length;
    hellos.push(data.resumed);
    if (!data.resumed) known.clear();
  }
  for (const record of data.records ?? data.upserts ?? []) known.set(record.id, record);
  // The record may have appeared and disappeared between two cuts.
  for (const gone of data.removed ?? []) known.delete(gone.id);
  for (const [at, ids] of Object.entries(data.touched ?? {})) {
    for (const one of ids) known.get(one).last_update = at;
  }
  if (event !== "cut") return;
  assert.ok(id === data.cursor && !cursors.includes(id), "a cut came twice");
  assert.deepEqual(known, await expected(data.at));
  cursors.push(id);
  console.log("cut");
  if (after !== null && cursors.length >= after + CUTS_AFTER) {
    assert.deepEqual(hellos, [false, ...hellos.slice(1).map(() => true)]);
    process.exit(0);
  }
}

// Sequential: a cut is compared before the next event is applied.
let turn = Promise.resolve();
function next(event, id, data) {
  turn = turn.then(() => take(event, id, data)).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

function followEvents() {
  // It reconnects by itself, with the id of the last cut, but gives up after any answer other than 200.
  const withKey = async (url, init) => {
    for (;;) {
      const answer = await fetch(url, { ...init, headers: { ...init.headers, "X-API-Key": key } });
      if (answer.status !== 503) return answer;
      await answer.text();
      await new Promise((done) => setTimeout(done, 200));
    }
  };
  const source = new EventSource(baseUrl + target, { fetch: withKey });
  for (const name of ["hello", "snapshot", "delta", "fresh", "cut", "reset"]) {
    source.addEventListener(name, (event) => next(name, event.lastEventId, JSON.parse(event.data)));
  }
}

function followSocket() {
  const since = cursors.length ? `&since=${cursors.at(-1)}` : "";
  const socket = new WebSocket(baseUrl.replace("http://", "ws://") + target + since, { headers: { "X-API-Key": key } });
  socket.on("message", (text, binary) => {
    assert.ok(!binary);
    const { event, id, data } = JSON.parse(text);
    next(event, id, data);
  });
  socket.on("error", (error) => console.log("away:", error.code));
  // After all earlier events are applied.
  socket.on("close", () => (turn = turn.then(() => void setTimeout(followSocket, 200))));
}

({ eventsource: followEvents, ws: followSocket })[library]();
setTimeout(() => {
  console.error(`${cursors.length} cuts, ${hellos}`);
  process.exit(1);
}, PATIENCE_MS);
