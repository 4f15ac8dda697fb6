/** Pushes messages of a feed. */

import { parse, unexpected } from "./answer.js";
import { LinesmanError } from "./error_type.js";
import { Http } from "./http.js";
import type { CallOptions, HttpOptions } from "./http.js";
import type { FeedMessage, PushReceipt } from "./types.js";

const LINES_MAX = 5_000;
const BYTES_MAX = 2 ** 22;
/** Maximum number of rejected lines in one receipt of the API. */
const REJECTED_MAX = 1_000;

export class Feed {
  readonly #http: Http;

  constructor(url: string, token: string, options: HttpOptions = {}) {
    this.#http = new Http(url, "Authorization", `Bearer ${token}`, options);
  }

  /**
   * Sends messages in as many bodies as needed, one after the other, and returns once all of them are stored. Line
   * numbers in the receipt count the messages from 1. A rejected message does not stop the others: check
   * `rejected_total`. An error contains the receipt of the bodies before it; sending everything again is safe.
   */
  async push(
    messages: Iterable<FeedMessage> | AsyncIterable<FeedMessage>, options: CallOptions = {},
  ): Promise<PushReceipt> {
    const total = receiptOf([]);
    const encoder = new TextEncoder();
    let [body, bytes, sent]: [BlobPart[], number, number] = [[], 0, 0];
    const flush = async () => {
      if (body.length) add(total, await this.#send(body, total, options), sent);
      [body, bytes, sent] = [[], 0, sent + body.length];
    };
    for await (const message of messages) {
      const line = encoder.encode(`${JSON.stringify(message)}\n`);
      if (body.length === LINES_MAX || bytes + line.length > BYTES_MAX) await flush();
      if (line.length > BYTES_MAX) {
        const text = `the message has ${line.length} bytes, more than ${BYTES_MAX}`;
        add(total, receiptOf([{ line: 1, code: "too_large", message: text }]), sent);
        sent++;
      } else {
        body.push(line);
        bytes += line.length;
      }
    }
    await flush();
    return total;
  }

  async #send(lines: BlobPart[], confirmed: PushReceipt, options: CallOptions): Promise<PushReceipt> {
    const packed = new Blob(lines).stream().pipeThrough(new CompressionStream("gzip"));
    const body = await new Response(packed).arrayBuffer();
    const headers = { "Content-Type": "application/x-ndjson", "Content-Encoding": "gzip" };
    try {
      // Repeating a body that was partly stored is safe.
      const isTemporary = (error: LinesmanError) => error.status === 503;
      const answer = await this.#http.send("/ingest/v1/messages", { method: "POST", headers, body }, isTemporary, options);
      const receipt = parse<PushReceipt>(answer);
      if (!Array.isArray(receipt?.rejected)) throw unexpected(answer, "is not a receipt");
      return receipt;
    } catch (error) {
      if (error instanceof LinesmanError) error.receipt = confirmed;
      throw error;
    }
  }
}

function receiptOf(rejected: PushReceipt["rejected"]): PushReceipt {
  return { accepted: 0, unchanged: 0, superseded: 0, rejected_total: rejected.length, rejected };
}

function add(total: PushReceipt, receipt: PushReceipt, offset: number): void {
  for (const name in total) if (name !== "rejected") total[name as "accepted"] += receipt[name as "accepted"];
  const listed = receipt.rejected.slice(0, REJECTED_MAX - total.rejected.length);
  total.rejected.push(...listed.map((rejected) => ({ ...rejected, line: rejected.line + offset })));
}
