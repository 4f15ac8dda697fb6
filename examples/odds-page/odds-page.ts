// An odds page: the best price of every coming event at every bookmaker, sport by sport.
//
// npm install && npm start, then open http://127.0.0.1:3000. LINESMAN_URL and LINESMAN_KEY name the service and key;
// the key stays on this server. Responses are cached by the client: a hundred readers cost as many requests as one.
import { createServer } from "node:http";
import { Linesman, LinesmanError } from "linesman-client";
import type { BestOutcome, Event } from "linesman-client";

const client = new Linesman();

// Names come from feeds and are not trusted.
const escape = (text: unknown) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const american = (price: number | string) => (Number(price) > 0 ? `+${price}` : `${price}`);

const cell = ({ name, price, bookmaker }: BestOutcome) =>
  `<td>${escape(name)} <b>${escape(american(price))}</b> <small>${escape(bookmaker)}</small></td>`;

const row = (event: Event, outcomes: BestOutcome[]) => `<tr>
  <td><time>${escape(event.commence_time)}</time></td>
  <td>${escape(event.title ?? `${event.home_team} – ${event.away_team}`)}</td>
  ${outcomes.slice(0, 3).map(cell).join("")}
</tr>`;

async function table(sport: string): Promise<string> {
  const events = await client.events(sport, { status: "scheduled", limit: 50, max_items: 50 }).toArray();
  if (events.length === 0) return "<p>No event is scheduled.</p>";
  const market = sport === "golf" ? "outright" : "moneyline";
  const lines = client.best(sport, { market, regions: ["us", "uk"], event_ids: events.map(({ id }) => id) });
  const best = new Map<string, BestOutcome[]>();
  for await (const line of lines) best.set(line.event_id, line.outcomes);
  return `<table>${events.map((event) => row(event, best.get(event.id) ?? [])).join("\n")}</table>`;
}

async function page(path: string): Promise<string> {
  const sports = await client.sports().toArray();
  const sport = sports.find(({ key }) => path === `/${key}`) ?? sports[0];
  const links = sports.map(({ key, title }) => `<a href="/${escape(key)}">${escape(title)}</a>`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="30">
<title>Odds</title>
<style>body { font: 16px sans-serif } td { padding: 4px 12px 4px 0 }</style>
<nav>${links.join(" · ")}</nav>
<h1>${escape(sport?.title ?? "No sports")}</h1>
${sport ? await table(sport.key) : ""}
</html>
`;
}

const server = createServer(async (request, response) => {
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  try {
    response.end(await page(new URL(request.url ?? "/", "http://localhost").pathname));
  } catch (error) {
    console.error(error);
    response.statusCode = 502;
    const message = error instanceof LinesmanError ? error.message : "The page failed.";
    response.end(`<!doctype html><p>${escape(message)}</p>`);
  }
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  const { port } = server.address() as { port: number };
  console.log(`http://127.0.0.1:${port}`);
});
