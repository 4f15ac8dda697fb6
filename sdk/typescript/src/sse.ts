/** Server-Sent Events, as far as the API uses them. */

import { LinesmanError } from "./error_type.js";

/** In UTF-16 units. An event has at most 500 records. */
const EVENT_MAX = 2 ** 24;
/** What a server may ask for before a client connects again. */
const RETRY_MAX_MS = 60_000;

export interface Block {
  event: string;
  data: string;
}

/** The error for what the API does not send. */
export function notOfTheApi(what: string): LinesmanError {
  return new LinesmanError({ code: "unexpected_response", message: `the stream ${what}` });
}

/** Takes the pieces of a body and gives its events. */
export class Parser {
  /** How long to wait before the next connection, where the server says so. */
  retryMs: number | null = null;
  readonly #decoder = new TextDecoder();
  /** The pieces of the line that is not whole yet. */
  #line: string[] = [];
  #event = "";
  #data: string[] = [];
  /** Of the event that is not whole yet, its line included. */
  #length = 0;

  /** The events that a piece completes. */
  add(piece: Uint8Array): Block[] {
    const blocks: Block[] = [];
    for (const [index, text] of this.#decoder.decode(piece, { stream: true }).split("\n").entries()) {
      const block = index > 0 && this.#end(this.#line.splice(0).join(""));
      if (block) blocks.push(block);
      this.#line.push(text);
      this.#length += text.length;
      if (this.#length > EVENT_MAX) throw notOfTheApi("has an event that is too long");
    }
    return blocks;
  }

  /** Takes a whole line; an empty one ends an event. */
  #end(text: string): Block | null {
    const [, name, value = ""] = /^([^:\r]*):? ?([^\r]*)/.exec(text) ?? [];
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Math.min(Number(value), RETRY_MAX_MS);
    // Others are comments, and the cursor, which a cut has in its data too.
    if (!/^\r?$/.test(text)) return null;
    const block = this.#data.length ? { event: this.#event, data: this.#data.join("\n") } : null;
    [this.#event, this.#data, this.#length] = ["", [], 0];
    return block;
  }
}
