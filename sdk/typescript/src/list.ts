/** Results, and lists that fetch their pages on demand. */

import type { Removed } from "./types.js";

/** The metadata of a response. */
export interface Meta {
  request_id: string | null;
  etag: string | null;
  /** Whether the body is one that this client had received before. */
  from_cache: boolean;
  /** Requests left and used of the key's tightest quota. */
  requests_remaining: number | null;
  requests_used: number | null;
  /** For odds, scores and events: the position of the response, for `since`. */
  cursor: string | null;
}

export interface Result<Body> {
  /** The body of the response. */
  data: Body;
  meta: Meta;
}

export interface Page<Item, Body> extends Result<Body> {
  items: Item[];
}

/** The changes of a list since a cursor. Store `upserts` by id and delete the ids in `removed`. */
export interface Delta<Item> {
  /** The position of this answer: the next `since`. */
  cursor: string;
  /** New and changed records. */
  upserts: Item[];
  /** Records that the selection no longer has. */
  removed: Removed[];
  meta: Meta;
}

/** Fetches the page of a query; `next` is the query of the next page. */
export type FetchPage<Item, Body> = (query: string) => Promise<Page<Item, Body> & { next: string | null }>;

/** All items of an operation, over all pages. Each iteration starts again at the first page. */
export class List<Item, Body> implements AsyncIterable<Item> {
  readonly #fetch: FetchPage<Item, Body>;
  readonly #query: string;
  readonly #max: number;

  /** @internal */
  constructor(fetch: FetchPage<Item, Body>, query: string, max: number) {
    if (!(max >= 0)) throw new RangeError("max_items must be 0 or more");
    [this.#fetch, this.#query, this.#max] = [fetch, query, max];
  }

  /** Page by page. The last one is complete, even if `max_items` ends within it. */
  async *pages(): AsyncGenerator<Page<Item, Body>, void, undefined> {
    let left = this.#max;
    let query: string | null = this.#query;
    while (query !== null && left > 0) {
      const { next, ...page }: Page<Item, Body> & { next: string | null } = await this.#fetch(query);
      yield page;
      left -= page.items.length;
      query = next;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let left = this.#max;
    for await (const { items } of this.pages()) {
      yield* items.slice(0, left);
      left -= items.length;
    }
  }

  /** All items at once. */
  async toArray(): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this) items.push(item);
    return items;
  }
}

/** A list whose changes can be requested: of odds, scores or events. */
export interface RecordList<Item, Body> extends List<Item, Body> {
  /**
   * The changes since `meta.cursor` of a page, or since `cursor` of the previous delta: one request, which costs no
   * quota if nothing changed. `CursorExpired`: read the list again.
   */
  since(cursor: string): Promise<Delta<Item>>;
}
