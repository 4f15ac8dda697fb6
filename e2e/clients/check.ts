// A typical client: types by openapi-typescript, requests by openapi-fetch, all with default options.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

// Neither `unknown` nor a separate type for each format.
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const priceIsTyped: Same<components["schemas"]["Price"], number | string> = true;
assert(priceIsTyped);

const [baseUrl, key] = process.argv.slice(2);
assert(baseUrl && key);
const client = createClient<paths>({ baseUrl, headers: { "X-API-Key": key } });

const events = await client.GET("/v1/sports/{sport_key}/events", {
  params: { path: { sport_key: "mma" }, query: { limit: 2, status: "scheduled" } },
});
assert(Array.isArray(events.data) && events.data.length === 2, JSON.stringify(events.error));
const ids = events.data.map((event: components["schemas"]["Event"]) => event.id);

const odds = await client.GET("/v1/sports/{sport_key}/odds", {
  params: {
    path: { sport_key: "mma" },
    query: { regions: "us,uk", event_ids: ids.join(","), market: "moneyline", odds_format: "decimal" },
  },
});
assert(Array.isArray(odds.data) && odds.data.length > 0, JSON.stringify(odds.error));
for (const record of odds.data) {
  assert(ids.includes(record.event_id));
  assert(record.outcomes.every((outcome) => typeof outcome.price === "number"));
}

const refused = await client.GET("/v1/sports/{sport_key}/odds", {
  params: { path: { sport_key: "mma" }, query: { limit: 501 } },
});
assert.equal(refused.error?.error.code, "invalid_parameter");
assert.equal(refused.error?.error.param, "limit");
