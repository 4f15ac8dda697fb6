/** Server-Sent Events, limited to the parts that the API uses. */

import { notOfTheApi } from "./error_type.js";

/** In UTF-16 units. An event has at most 500 records. */
const EVENT_MAX = 2 ** 24;
/** Maximum reconnection delay that a server may request. */
const RETRY_MAX_MS = 60_000;

export interface Block {
  event: string;
  data: string;
}

/** Parses the pieces of a body into events. */
export class Parser {
  /** Delay before the next connection, if the server sent one. */
  retryMs: number | null = null;
  readonly #decoder = new TextDecoder();
  /** The pieces of the incomplete line. */
  #line: string[] = [];
  #event = "";
  #data: string[] = [];
  /** Length of the incomplete event, its line included. */
  #length = 0;

  /** The events that a piece completes. */
  add(piece: Uint8Array): Block[] {
    const blocks: Block[] = [];
    for (const [index, text] of this.#decoder.decode(piece, { stream: true }).split("\n").entries()) {
      const block = index > 0 && this.#end(this.#line.splice(0).join(""));
      if (block) blocks.push(block);
      this.#line.push(text);
      this.#length += text.length;
      if (this.#length > EVENT_MAX) throw notOfTheApi("an event is too long");
    }
    return blocks;
  }

  /** Processes a complete line; an empty one ends an event. */
  #end(text: string): Block | null {
    const [, name, value = ""] = /^([^:\r]*):? ?([^\r]*)/.exec(text) ?? [];
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Math.min(+value, RETRY_MAX_MS);
    // Others are comments, and the cursor, which is also in the data of a cut.
    if (!/^\r?$/.test(text)) return null;
    const block = this.#data.length ? { event: this.#event, data: this.#data.join("\n") } : null;
    [this.#event, this.#data, this.#length] = ["", [], 0];
    return block;
  }
}
