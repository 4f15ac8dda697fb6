/** The contents of streams: events, and the resulting state. */

import { notOfTheApi } from "./error_type.js";
import type * as api from "./types.js";

/** An event of a stream, in the form of a WebSocket message; `other` is an unknown one, with its data as text. */
export type StreamEvent =
  | { event: "hello"; data: api.StreamHello }
  | { event: "snapshot"; data: api.StreamSnapshot }
  | { event: "delta"; data: api.StreamDelta }
  | { event: "fresh"; data: api.StreamFresh }
  | { event: "reset"; data: api.StreamReset }
  | { event: "other"; name: string; data: string };

/** The events up to a cut, which belong together. */
export interface Update {
  /** The events since the previous cut. */
  events: StreamEvent[];
  /** The new position of the stream. */
  cut: api.StreamCut;
  /** Why the server could not continue from the last cursor: the old state is discarded, this update is complete. */
  reset: string | null;
}

/**
 * The state of a stream: after each update it equals the lists of the same selection, except for `last_update`;
 * with `freshness: "records"` including it.
 */
export class State {
  /** By the record's id. */
  readonly odds = new Map<string, api.OddsRecord>();
  /** By the event's id. */
  readonly scores = new Map<string, api.ScoreRecord>();
  /** By the event's id. */
  readonly events = new Map<string, api.Event>();
}

/** Values by untrusted names: it contains only its own entries. */
interface Table<Value> { [name: string]: Value | null | undefined; }

/** The field that is the key of a channel's records; records of unknown channels are not kept. */
const ID_OF: Table<string> = { __proto__: null, odds: "id", scores: "event_id", events: "id" };

/** Whether a list contains texts, or objects with a text in a field. */
const texts = (list: unknown, field?: string | null): boolean =>
  Array.isArray(list) && list.every((one) => typeof (field ? one?.[field] : one) === "string");

const records = (list: unknown, channel: string): boolean => texts(ID_OF[channel] ? list : [], ID_OF[channel]);

/** Whether a known event has all fields that are used, so that it can be folded completely. */
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

/** The data of an event; null if this version does not know it. */
export function dataOf(event: string, text: string): unknown {
  const isWhole = CHECKS[event];
  if (!isWhole) return null;
  try {
    const data: unknown = JSON.parse(text);
    if (isWhole(data)) return data;
  } catch {
    // Not JSON, or not an object.
  }
  throw notOfTheApi(`the event \`${event}\` cannot be read`);
}

/** Stores records by id and deletes removed ones. */
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
        // The record in its event is not changed.
        if (record) state.odds.set(id, { ...record, last_update });
      }
    }
  }
}
