/** What streams carry: events, and the state they add up to. */

import { notOfTheApi } from "./sse.js";
import type * as api from "./types.js";

/** An event of a stream, as a WebSocket has it; `other` is one that this version does not know, its data as text. */
export type StreamEvent =
  | { event: "hello"; data: api.StreamHello }
  | { event: "snapshot"; data: api.StreamSnapshot }
  | { event: "delta"; data: api.StreamDelta }
  | { event: "fresh"; data: api.StreamFresh }
  | { event: "reset"; data: api.StreamReset }
  | { event: "other"; name: string; data: string };

/** What belongs together: the events up to a cut. */
export interface Update {
  /** The events since the cut before this one. */
  events: StreamEvent[];
  /** Where the stream stands now. */
  cut: api.StreamCut;
  /** Why the server could not go on from the last cursor: what was known is forgotten, and this is all there is. */
  reset: string | null;
}

/**
 * What a stream adds up to: after each update what the lists of the same selection would give, but for `last_update`;
 * with `freshness: "records"` that, too.
 */
export class State {
  /** By the record's id. */
  readonly odds = new Map<string, api.OddsRecord>();
  /** By the event's id. */
  readonly scores = new Map<string, api.ScoreRecord>();
  /** By the event's id. */
  readonly events = new Map<string, api.Event>();
}

/** Values by names that come from outside: there is nothing in it but what is written. */
interface Table<Value> { [name: string]: Value | null | undefined; }

/** The field that a record of a channel is put by; of others that this version does not know, nothing is kept. */
const ID_OF: Table<string> = { __proto__: null, odds: "id", scores: "event_id", events: "id" };

/** Whether a list is of texts, or of objects that have one in a field. */
const texts = (list: unknown, field?: string | null): boolean =>
  Array.isArray(list) && list.every((one) => typeof (field ? one?.[field] : one) === "string");

const records = (list: unknown, channel: string): boolean => texts(ID_OF[channel] ? list : [], ID_OF[channel]);

/** Whether an event that this version knows has what is used of it, so that it folds as a whole. */
const CHECKS: Table<(data: any) => boolean> = {
  __proto__: null,
  hello: Boolean,
  snapshot: ({ records: list, channel }) => records(list, channel),
  delta: ({ upserts, removed, channel }) => records(upserts, channel) && texts(removed, "id"),
  fresh: ({ touched }) => Object.values(touched ?? {}).every((ids) => texts(ids)),
  reset: Boolean,
  cut: ({ cursor }) => texts([cursor]),
  end: ({ code, retry_after_s }) => texts([code]) && retry_after_s >= 0,
};

/** The data of an event; null where this version does not know it. */
export function dataOf(event: string, text: string): unknown {
  const isWhole = CHECKS[event];
  if (!isWhole) return null;
  try {
    const data: unknown = JSON.parse(text);
    if (isWhole(data)) return data;
  } catch {
    // No JSON, or no object.
  }
  throw notOfTheApi(`has an event \`${event}\` that cannot be read`);
}

/** Puts records by their ids and deletes those that are gone. */
export function fold(state: State, { event, data }: StreamEvent): void {
  if (event === "reset" || (event === "hello" && !data.resumed)) {
    for (const known of Object.values(state)) known.clear();
  } else if (event === "snapshot" || event === "delta") {
    const id = ID_OF[data.channel];
    if (!id) return;
    const known = state[data.channel as keyof State] as Map<unknown, unknown>;
    for (const record of event === "snapshot" ? data.records : data.upserts) known.set(record[id as never], record);
    if (event === "delta") for (const gone of data.removed) known.delete(gone.id);
  } else if (event === "fresh") {
    for (const [last_update, ids] of Object.entries(data.touched ?? {})) {
      for (const id of ids) {
        const record = state.odds.get(id);
        // The record in the event that brought it stays as it was.
        if (record) state.odds.set(id, { ...record, last_update });
      }
    }
  }
}
