/** The client of the API: one method for each operation. */

import { parse, unexpected } from "./answer.js";
import type { Answer } from "./answer.js";
import { ResponseCache, isFresh, metaOf, renewed, responseOf } from "./cache.js";
import { Http, environment, isTemporaryRead } from "./http.js";
import type { CallOptions, HttpOptions } from "./http.js";
import { List } from "./list.js";
import type { Delta, Meta, RecordList, Result } from "./list.js";
import { Changes } from "./stream.js";
import type * as api from "./types.js";

/** The query parameters of an operation by the API's names; lists as arrays or comma-separated texts. */
export type Query<Params> = {
  [Name in keyof Params]: Params[Name] | (string[] extends Params[Name] ? readonly string[] : never) | undefined;
};

/** The same for a list; `limit` is the size of a page, `max_items` the maximum number of items of all pages. */
export type ListQuery<Params> = Query<Params> & { max_items?: number | undefined };

export interface LinesmanOptions extends HttpOptions {
  /** The server; otherwise `LINESMAN_URL`, otherwise `http://127.0.0.1:8080`. */
  url?: string | undefined;
  /** The API key; otherwise `LINESMAN_KEY`. Without one, no key is sent: your proxy may add it. */
  key?: string | undefined;
  /** `false`: every call sends a request. */
  cache?: boolean | undefined;
}

/** A file that is being downloaded. */
export interface Export {
  /** The next piece, or null at the end. */
  read(): Promise<Uint8Array | null>;
  meta: Meta;
  /** The `lineage` of the day's next file, or null for the last. */
  lineage: number | null;
}

type Values = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

const STATUS = "/v1/status";

export class Linesman {
  readonly #http: Http;
  readonly #cache: ResponseCache | undefined;

  constructor(options: LinesmanOptions = {}) {
    const url = options.url ?? environment("LINESMAN_URL") ?? "http://127.0.0.1:8080";
    const key = options.key ?? environment("LINESMAN_KEY") ?? "";
    this.#http = new Http(url, "X-API-Key", key, options);
    this.#cache = options.cache === false ? undefined : new ResponseCache();
  }

  sports(parameters?: Query<api.ListSportsParams>, options?: CallOptions): List<api.Sport, api.SportList> {
    return this.#list("/v1/sports", "sports", parameters, options);
  }

  books(parameters?: Query<api.ListBooksParams>, options?: CallOptions): List<api.Bookmaker, api.Bookmaker[]> {
    return this.#list("/v1/books", "", parameters, options);
  }

  /** The time range for which `as_of` finds publications. */
  history(options?: CallOptions): Promise<Result<api.HistoryReach>> {
    return this.#one("/v1/history", undefined, options);
  }

  /** The state of the service and the limits of the key; never cached. */
  status(options?: CallOptions): Promise<Result<api.ServiceStatus>> {
    return this.#one(STATUS, undefined, options);
  }

  odds(
    sport: string, parameters: ListQuery<api.GetOddsParams> & { group_by: "bout" }, options?: CallOptions,
  ): List<api.Bout, api.GroupedBouts>;
  odds(
    sport: string, parameters?: ListQuery<api.GetOddsParams> & { group_by?: undefined }, options?: CallOptions,
  ): RecordList<api.OddsRecord, api.OddsRecord[]>;
  odds(sport: string, parameters?: Values, options?: CallOptions): unknown {
    return this.#list(of(sport, "odds"), "bouts", parameters, options);
  }

  scores(
    sport: string, parameters?: ListQuery<api.GetScoresParams>, options?: CallOptions,
  ): RecordList<api.ScoreRecord, api.ScoreRecord[]> {
    return this.#list(of(sport, "scores"), "", parameters, options);
  }

  events(
    sport: string, parameters?: ListQuery<api.ListEventsParams>, options?: CallOptions,
  ): RecordList<api.Event, api.Event[]> {
    return this.#list(of(sport, "events"), "", parameters, options);
  }

  event(
    sport: string, event_id: string, parameters?: Query<api.GetEventParams>, options?: CallOptions,
  ): Promise<Result<api.Event>> {
    return this.#one(of(sport, "events", event_id), parameters, options);
  }

  /** The best price of every outcome, line by line. */
  best(
    sport: string, parameters?: ListQuery<api.GetBestParams>, options?: CallOptions,
  ): List<api.BestLine, api.BestLines> {
    return this.#list(of(sport, "best"), "lines", parameters, options);
  }

  /** Prices without the bookmakers' margins, line by line. */
  fair(
    sport: string, parameters?: ListQuery<api.GetFairParams>, options?: CallOptions,
  ): List<api.FairLine, api.FairLines> {
    return this.#list(of(sport, "fair"), "lines", parameters, options);
  }

  arbitrage(
    sport: string, parameters?: ListQuery<api.ListArbitragesParams>, options?: CallOptions,
  ): List<api.Arbitrage, api.Arbitrages> {
    return this.#list(of(sport, "arbitrage"), "arbitrages", parameters, options);
  }

  /** Prices above the fair ones. */
  ev(
    sport: string, parameters?: ListQuery<api.ListEvParams>, options?: CallOptions,
  ): List<api.Value, api.Values> {
    return this.#list(of(sport, "ev"), "values", parameters, options);
  }

  middles(
    sport: string, parameters?: ListQuery<api.ListMiddlesParams>, options?: CallOptions,
  ): List<api.Middle, api.Middles> {
    return this.#list(of(sport, "middles"), "middles", parameters, options);
  }

  /** The number of prices of a sport, and the reasons for missing ones. */
  coverage(
    sport: string, parameters?: Query<api.GetCoverageParams>, options?: CallOptions,
  ): Promise<Result<api.Coverage>> {
    return this.#one(of(sport, "coverage"), parameters, options);
  }

  /** Why each price of an event is present or missing. */
  explain(
    sport: string, event_id: string, parameters?: Query<api.ExplainEventParams>, options?: CallOptions,
  ): Promise<Result<api.Explanation>> {
    return this.#one(of(sport, "events", event_id, "explain"), parameters, options);
  }

  /** The closing lines of events that have started. */
  closing(
    sport: string, parameters?: ListQuery<api.GetClosingParams>, options?: CallOptions,
  ): List<api.ClosingRecord, api.ClosingRecord[]> {
    return this.#list(of(sport, "odds", "closing"), "", parameters, options);
  }

  /** The price history of an event: opening lines, closing lines, and every change. */
  price_path(
    sport: string, event_id: string, parameters?: ListQuery<api.GetPricePathParams>, options?: CallOptions,
  ): List<api.PricePath, api.PricePath[]> {
    return this.#list(of(sport, "events", event_id, "odds", "history"), "", parameters, options);
  }

  /**
   * The archive's file of a table and a day (UTC), which can be read once, in pieces. It requires a key with
   * `export:read`.
   */
  async export(
    sport: string, table: string, date: string, parameters: Query<api.GetExportParams> = {}, options: CallOptions = {},
  ): Promise<Export> {
    const target = of(sport, "export", table, date) + queryOf(parameters);
    const { response: { headers }, read } = await this.#http.open(target, {}, options);
    const next = headers.get("link")?.match(/lineage=(\d+)/)?.[1];
    return { meta: metaOf(headers), lineage: next ? +next : null, read: () => read(0) };
  }

  /** Changes as they are published, and the resulting state. It connects when it is read. */
  stream(parameters: Query<api.GetStreamParams> = {}, options: CallOptions = {}): Changes {
    return new Changes(this.#http, `/v1/stream${queryOf(parameters)}`, parameters.heartbeat, options);
  }

  #list<Item, Body>(
    path: string, field: string, parameters: Values = {}, options?: CallOptions,
  ): RecordList<Item, Body> {
    const { max_items = Infinity, ...filters } = parameters;
    const fetch = async (query: string) => {
      const { answer, data, meta } = await this.#get<Body>(path, query, options);
      const items: unknown = Array.isArray(data) ? data : (data as Record<string, unknown> | null)?.[field];
      if (!Array.isArray(items)) throw unexpected(answer, "is not a list");
      return { items: items as Item[], data, meta, next: nextQuery(answer, query) };
    };
    // The page size is not part of the selection.
    const since = (cursor: string) =>
      this.#since<Item>(path + queryOf({ ...filters, limit: null, since: cursor }), options);
    return Object.assign(new List(fetch, queryOf(filters), Number(max_items)), { since });
  }

  /** The changes since a cursor are requested only once, so they are not cached. 204 means that nothing changed. */
  async #since<Item>(target: string, options: CallOptions = {}): Promise<Delta<Item>> {
    const answer = await this.#http.send(target, {}, isTemporaryRead, options);
    const { meta } = responseOf(answer, 0);
    const nothing = { cursor: meta.cursor, upserts: [], removed: [] };
    const { cursor, upserts, removed } = answer.status === 204 ? nothing : parse<Delta<Item>>(answer) ?? {};
    if (cursor && [upserts, removed].every(Array.isArray)) return { cursor, upserts, removed, meta };
    throw unexpected(answer, "does not say what changed");
  }

  async #one<Body>(path: string, parameters: Values = {}, options?: CallOptions): Promise<Result<Body>> {
    const { data, meta } = await this.#get<Body>(path, queryOf(parameters), options);
    return { data, meta };
  }

  async #get<Body>(path: string, query: string, options: CallOptions = {}): Promise<Result<Body> & { answer: Answer }> {
    const target = path + query;
    const { clock } = this.#http;
    const cache = path === STATUS ? undefined : this.#cache;
    const held = cache?.get(target);
    if (held && isFresh(held, clock.now())) {
      return { answer: held.answer, data: parse(held.answer), meta: { ...held.meta, from_cache: true } };
    }
    const etag = held?.meta.etag;
    const init = etag ? { headers: { "If-None-Match": etag } } : {};
    const answer = await this.#http.send(target, init, isTemporaryRead, options);
    const is304 = answer.status === 304;
    if (is304 && !held) throw unexpected(answer, "answers no If-None-Match");
    const response = is304 && held ? renewed(held, answer, clock.now()) : responseOf(answer, clock.now());
    const data = parse<Body>(response.answer);
    if (response.mayBeKept) cache?.put(target, response);
    return { answer: response.answer, data, meta: { ...response.meta, from_cache: is304 } };
  }
}

/** The query of the next page. Only the query: the key is sent to no other address, whatever `Link` contains. */
function nextQuery(answer: Answer, query: string): string | null {
  const target = /<([^<>]*)>[^<,]*;\s*rel="?next\b/i.exec(answer.headers.get("link") ?? "")?.[1];
  if (target === undefined) return null;
  const next = /\?[^#]*/.exec(target)?.[0] ?? "";
  if (next === query) throw unexpected(answer, "names itself as the next page");
  return next;
}

/** A path below a sport. */
function of(...parts: string[]): string {
  return ["/v1/sports", ...parts.map(encodeURIComponent)].join("/");
}

function queryOf(parameters: Values): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null) query.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = String(query);
  return text && `?${text}`;
}
