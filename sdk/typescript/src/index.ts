/** Client of the Linesman sports odds API. */

export { Linesman } from "./client.js";
export type { Export, LinesmanOptions, ListQuery, Query } from "./client.js";
export * from "./error.js";
export { Feed } from "./feed.js";
export type { CallOptions, Clock, HttpOptions } from "./http.js";
export { VERSION } from "./http.js";
export { List } from "./list.js";
export type { Delta, Meta, Page, RecordList, Result } from "./list.js";
export { State } from "./state.js";
export type { StreamEvent, Update } from "./state.js";
export { Changes } from "./stream.js";
export type * from "./types.js";
