/** Changes as they are published, over connections that continue where they were. */

import { ConnectionFailed } from "./error.js";
import { notOfTheApi, typeOf } from "./error_type.js";
import type { LinesmanError } from "./error_type.js";
import { backoff } from "./http.js";
import type { CallOptions, Http, Opened } from "./http.js";
import { Parser } from "./sse.js";
import type { Block } from "./sse.js";
import { State, dataOf, fold } from "./state.js";
import type { StreamEvent, Update } from "./state.js";
import type { StreamCut, StreamEnd } from "./types.js";

/** Maximum size of the events between two cuts in UTF-16 units: far more than a whole sport. */
const PENDING_MAX = 2 ** 28;
/** Maximum number of consecutive lost connections without a cut before an error is thrown. */
const LOST_MAX = 3;
/** The server's default, if the request does not set one. */
const HEARTBEAT_S = 15;
const EVENTS = "text/event-stream";
/** Codes after which a stream continues. */
const TEMPORARY = ["unavailable", "maintenance", "slow"];

interface Connection extends Opened {
  parser: Parser;
  /** Events that have arrived and are not processed yet. */
  blocks: Block[];
}

/**
 * The updates of a stream. It reconnects by itself and continues from the last cut, also if it is read again
 * after an error or after a loop was left, which closes the connection.
 */
export class Changes implements AsyncIterableIterator<Update> {
  /** The state of the stream as of the last update. */
  readonly state = new State();
  readonly #http: Http;
  readonly #path: string;
  readonly #heartbeat: number;
  readonly #options: CallOptions;
  #connection: Connection | null = null;
  /** Events after the last cut. They are sent again if the connection is lost. */
  #pending: StreamEvent[] = [];
  #pendingLength = 0;
  #cursor: string | null = null;
  #lost = 0;
  /** Wait before the next connection, in milliseconds. */
  #wait = 0;
  #ended = false;

  /** @internal */
  constructor(http: Http, path: string, heartbeat: number | undefined, options: CallOptions) {
    [this.#http, this.#path, this.#heartbeat, this.#options] = [http, path, heartbeat ?? HEARTBEAT_S, options];
  }

  /** The cursor of the last update: pass it as `since` of a later stream to continue from here. */
  get cursor(): string | null {
    return this.#cursor;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Waits for the next update; done if the stream has ended. */
  async next(): Promise<IteratorResult<Update, undefined>> {
    try {
      while (!this.#ended) {
        const value = await this.#step();
        if (value) return { done: false, value };
      }
    } catch (error) {
      this.close();
      throw error;
    }
    return this.return();
  }

  /** Called when a loop is left. */
  async return(): Promise<IteratorResult<Update, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** Closes the connection, and discards the events after the last cut: they are sent again. */
  close(): void {
    this.#connection?.close();
    [this.#connection, this.#pending, this.#pendingLength] = [null, [], 0];
  }

  /** Processes one event, reads one piece or opens one connection. */
  async #step(): Promise<Update | null> {
    const connection = (this.#connection ??= await this.#connect());
    if (!connection) return null;
    const block = connection.blocks.shift();
    if (block) return this.#take(block);
    try {
      // A heartbeat may be late.
      const piece = await connection.read(2 * this.#heartbeat);
      if (piece) connection.blocks = connection.parser.add(piece);
      else throw new ConnectionFailed("the stream has no event `end`");
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error;
      const told = connection.parser.retryMs ?? backoff(this.#lost) * 1000;
      this.#wait = told * (0.75 + this.#http.clock.random() / 2);
      this.#lose(error);
    }
    return null;
  }

  /** Null where there is nothing to come after the last cut but the end. */
  async #connect(): Promise<Connection | null> {
    if (this.#wait > 0) await this.#http.clock.sleep(this.#wait, this.#options.signal);
    this.#wait = 0;
    const headers = { Accept: EVENTS, ...(this.#cursor && { "Last-Event-ID": this.#cursor }) };
    const opened = await this.#http.open(this.#path, headers, this.#options);
    const { headers: answered, status } = opened.response;
    if (answered.get("content-type")?.startsWith(EVENTS)) return { ...opened, parser: new Parser(), blocks: [] };
    opened.close();
    if ((this.#ended = status === 204)) return null;
    throw notOfTheApi("the answer is no stream of events");
  }

  #take({ event, data: text }: Block): Update | null {
    this.#pendingLength += text.length;
    if (this.#pendingLength > PENDING_MAX) {
      throw notOfTheApi("the stream is too long without a cut");
    }
    const data = dataOf(event, text);
    if (event === "cut") return this.#cut(data as StreamCut);
    if (event === "end") this.#end(data as StreamEnd);
    else if (data === null) this.#pending.push({ event: "other", name: event, data: text });
    else this.#pending.push({ event, data } as StreamEvent);
    return null;
  }

  #cut(cut: StreamCut): Update {
    const events = this.#pending;
    [this.#pending, this.#pendingLength, this.#lost] = [[], 0, 0];
    let reset: string | null = null;
    for (const event of events) {
      fold(this.state, event);
      if (event.event === "reset") reset = event.data.reason;
    }
    // Only values that a header can carry.
    this.#cursor = /^[\x21-\x7e]+$/.test(cut.cursor) ? cut.cursor : null;
    return { events, cut, reset };
  }

  #end({ code, message, retry_after_s }: StreamEnd): void {
    this.#ended = !TEMPORARY.includes(code);
    if (code === "done") return;
    const error = new (typeOf(code))({ code, message, retry_after: retry_after_s });
    // If the server asks for no wait, the client still backs off.
    this.#wait = Math.max(retry_after_s, backoff(this.#lost)) * 1000;
    if (this.#ended || retry_after_s > this.#http.maxWait) throw error;
    this.#lose(error);
  }

  #lose(error: LinesmanError): void {
    this.close();
    this.#lost++;
    if (this.#lost < LOST_MAX) return;
    this.#lost = 0;
    throw error;
  }
}
