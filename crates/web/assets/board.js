// The board's script: applies the changes of each publication, filters events at once, shows times in the reader's
// time zone, and remembers the format and the bookmakers. Without it the pages show the same as of the request, in UTC,
// and every choice is in the URL.

const table = () => document.querySelector("table.board");
const find = document.getElementById("find");
const dot = document.getElementById("live");
const said = document.getElementById("live-text");

const competition = document.getElementById("competition");
const day = document.getElementById("day");

/** Delay before reconnecting if the service had no free slot, in milliseconds. */
const LATER = 30_000;

let source = null;
let seen = table()?.dataset.cursor;
let retry = 0;

function connect() {
  const shown = table();
  if (!shown || source || document.hidden) return;
  source = new EventSource(`${shown.dataset.stream}&since=${seen}`);
  source.addEventListener("open", () => say("on", "Prices update by themselves"));
  source.addEventListener("delta", (event) => {
    seen = event.lastEventId;
    apply(JSON.parse(event.data));
  });
  source.addEventListener("whole", (event) => {
    seen = event.lastEventId;
    afresh().catch(() => {});
  });
  source.addEventListener("error", () => {
    say("off", "Updates are interrupted");
    // The browser reconnects by itself unless it was refused.
    if (source?.readyState !== EventSource.CLOSED) return;
    disconnect();
    clearTimeout(retry);
    retry = setTimeout(() => afresh().catch(() => {}).then(connect), LATER);
  });
}

function disconnect() {
  source?.close();
  source = null;
}

function say(state, text) {
  if (!dot || dot.dataset.state === state) return;
  dot.hidden = false;
  dot.dataset.state = state;
  said.textContent = text;
}

/** Applies the changes. All but whole events are inserted as text. */
function apply(delta) {
  const at = document.getElementById("cut");
  at.dateTime = delta.cut;
  for (const cell of table().querySelectorAll("td.up, td.down")) cell.classList.remove("up", "down");
  for (const [column, late] of delta.heads) head(column, late);
  for (const [id, html] of delta.events) place(id, html);
  if (delta.order) arrange(delta.order);
  for (const [id, row, column, dress, left, text, move] of delta.cells) {
    const cell = line(id, row)?.querySelectorAll("td.p")[column];
    if (cell) set(cell, dress, left, text, move);
  }
  for (const [id, row, best] of delta.best) {
    line(id, row)?.querySelector("td.best").replaceChildren(...best.map(offer));
  }
  for (const [id, row, d] of delta.sparks) {
    line(id, row)?.querySelector("td.tr path")?.setAttribute("d", d);
  }
  for (const [id, score] of delta.scores) {
    const shown = document.getElementById(id)?.querySelector(".score");
    if (shown) shown.textContent = score;
  }
  localise();
  filter();
  // An event's page has more than the table; it is reloaded when a price moved.
  const moved = delta.cells.length + delta.events.length + delta.scores.length > 0;
  if (moved && document.querySelector("[data-swap]")) swap().catch(() => {});
}

/** One of the best prices. */
function offer([price, who]) {
  const [whole, b, small] = ["span", "b", "small"].map((name) => document.createElement(name));
  b.textContent = price;
  small.textContent = who;
  whole.append(b, small);
  return whole;
}

function line(id, row) {
  return document.getElementById(id)?.querySelectorAll("tr.o")[row];
}

function set(cell, dress, left, text, move) {
  cell.className = dress;
  cell.textContent = text;
  if (left) {
    const before = document.createElement("i");
    before.textContent = left;
    cell.prepend(before);
  }
  if (move) {
    // Reading a size between the two restarts the animation.
    void cell.offsetWidth;
    cell.classList.add(move);
  }
}

function head(column, late) {
  const cell = table().querySelectorAll("thead th.bk")[column];
  if (!cell) return;
  cell.classList.toggle("late", late !== "");
  cell.querySelector("small").textContent = late ? `late ${late}` : "";
}

/** An event that is new or has other rows, as rendered by the service. */
function place(id, html) {
  const box = document.createElement("template");
  box.innerHTML = `<table>${html}</table>`;
  const part = box.content.querySelector("tbody");
  const old = document.getElementById(id);
  if (old) old.replaceWith(part);
  else table().append(part);
}

function arrange(order) {
  const wanted = new Set(order);
  for (const part of [...table().tBodies]) if (!wanted.has(part.id)) part.remove();
  order.map((id) => document.getElementById(id)).filter(Boolean).forEach((part, at) => {
    if (table().tBodies[at] !== part) table().insertBefore(part, table().tBodies[at] ?? null);
  });
}

/** Fetches the current page with all events; they are filtered here. */
async function fetched() {
  const whole = new URL(location.href);
  for (const name of ["q", "competition", "day"]) whole.searchParams.delete(name);
  const answer = await fetch(whole, { cache: "no-cache" });
  if (!answer.ok) throw new Error("gone");
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** Replaces the whole screen and keeps the scroll position. */
async function afresh() {
  const fresh = await fetched();
  const box = document.querySelector(".board-box");
  const [left, top] = [box?.scrollLeft ?? 0, box?.scrollTop ?? 0];
  document.getElementById("screen").replaceWith(fresh.getElementById("screen"));
  document.getElementById("cut").replaceWith(fresh.getElementById("cut"));
  document.querySelector(".board-box")?.scrollTo(left, top);
  seen = table()?.dataset.cursor ?? seen;
  localise();
  filter();
  hint();
}

/** The parts around the table. */
async function swap() {
  const fresh = await fetched();
  for (const old of document.querySelectorAll("[data-swap]")) {
    const part = fresh.querySelector(`[data-swap=${old.dataset.swap}]`);
    if (part && !old.contains(document.activeElement)) old.replaceWith(part);
  }
  localise();
}

// Local time

const LANGUAGE = navigator.language.startsWith("en") ? navigator.language : "en-GB";
const writer = (options) => new Intl.DateTimeFormat(LANGUAGE, options);
const DAY = writer({ day: "numeric", month: "short" });
const TIME = writer({ hour: "2-digit", minute: "2-digit" });
const CLOCK = writer({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const ZONE = writer({ timeZoneName: "short" }).formatToParts().find((part) => part.type === "timeZoneName").value;

function localise() {
  for (const time of document.querySelectorAll("main time[datetime]")) {
    const at = new Date(time.dateTime);
    time.textContent = time.id === "cut" ? CLOCK.format(at) : `${DAY.format(at)}, ${TIME.format(at)}`;
  }
  for (const tick of document.querySelectorAll("[data-time]")) {
    tick.textContent = TIME.format(new Date(tick.dataset.time));
  }
  for (const zone of document.querySelectorAll(".zone")) zone.textContent = ZONE;
}

// Filters

function filter() {
  if (!find || !table()) return;
  offerFilters();
  const wanted = find.value.trim().toLowerCase();
  let left = 0;
  for (const part of table().tBodies) {
    part.hidden = !part.textContent.toLowerCase().includes(wanted)
      || (competition.value !== "" && part.dataset.competition !== competition.value)
      || (day.value !== "" && dayOf(part) !== day.value);
    if (!part.hidden) left += 1;
  }
  const none = document.getElementById("none");
  if (none) none.hidden = left > 0;
}

/** Options of the filters; days are in the reader's time zone. A selected option stays until it is changed. */
function offerFilters() {
  const [competitions, days] = [new Map(), new Map()];
  for (const part of table().tBodies) {
    if (part.dataset.competition) competitions.set(part.dataset.competition, part.dataset.competition);
    days.set(dayOf(part), DAY.format(new Date(part.dataset.start)));
  }
  for (const [select, offered] of [[competition, competitions], [day, days]]) {
    const chosen = select.value;
    if (chosen && !offered.has(chosen)) offered.set(chosen, chosen);
    const options = [...offered].sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([value, text]) => new Option(text, value, false, value === chosen));
    const shown = [...select.options].slice(1);
    const same = shown.length === options.length
      && shown.every((own, at) => own.value === options[at].value && own.text === options[at].text);
    if (!same) select.replaceChildren(select.options[0], ...options);
  }
}

/** The day on which an event begins in the reader's time zone, as 2026-11-16. */
function dayOf(part) {
  const at = new Date(part.dataset.start);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
}

/** Puts the filters into the URL and into the links to other views of the same events. */
function note() {
  const filtered = (address) => {
    const url = new URL(address);
    for (const field of [find, competition, day]) {
      if (field.value) url.searchParams.set(field.name, field.value);
      else url.searchParams.delete(field.name);
    }
    return url;
  };
  history.replaceState(null, "", filtered(location.href));
  for (const link of document.querySelectorAll(".switch a, .mine a")) link.href = filtered(link.href);
}

if (find) {
  find.form.querySelector("button").hidden = true;
  // A local day may not be among the UTC days that the page offers.
  for (const field of [competition, day]) {
    const asked = new URL(location.href).searchParams.get(field.name);
    if (asked && field.value !== asked) field.add(new Option(asked, asked, true, true));
  }
  for (const field of [find, competition, day]) {
    field.addEventListener("input", () => { filter(); note(); });
  }
  find.form.addEventListener("submit", (event) => event.preventDefault());
}

// Stored in the browser: the odds format, the region, the bookmakers.

const MEMORY = "linesman.board";
const KEPT = ["format", "region", "bookmaker"];

/** The stored choice; empty if the browser stores nothing. */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(MEMORY)) ?? {};
  } catch {
    return {};
  }
}

function remember(name, values) {
  try {
    localStorage.setItem(MEMORY, JSON.stringify({ ...remembered(), [name]: values }));
  } catch {
    // Without storage the choice is still in the URL.
  }
}

addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-keep] a");
  if (!link) return;
  const name = link.closest("[data-keep]").dataset.keep;
  remember(name, new URL(link.href).searchParams.getAll(name));
});
for (const form of document.querySelectorAll("form[data-keep]")) {
  form.addEventListener("submit", () => remember("bookmaker", new FormData(form).getAll("bookmaker")));
  // The page may have been filtered since it was rendered.
  form.addEventListener("formdata", ({ formData }) => {
    for (const field of [find, competition, day].filter(Boolean)) {
      formData.delete(field.name);
      if (field.value) formData.set(field.name, field.value);
    }
  });
}

/** Applies the stored choice to a URL without one; readers in the United States get American odds. */
function recall() {
  const here = new URL(location.href);
  if (KEPT.some((name) => here.searchParams.has(name))) return false;
  const own = { format: navigator.language === "en-US" ? ["american"] : [], ...remembered() };
  const usual = { format: "decimal", region: "all" };
  for (const name of KEPT) {
    const values = [own[name] ?? []].flat().filter((value) => value !== usual[name]);
    for (const value of values) here.searchParams.append(name, value);
  }
  const differs = KEPT.some((name) => here.searchParams.has(name));
  if (differs) location.replace(here);
  return differs;
}

// A table wider than its container

function hint() {
  const box = document.querySelector(".board-box");
  const text = document.getElementById("hint");
  if (!box || !text) return;
  text.hidden = box.scrollWidth <= box.clientWidth;
  box.onscroll = () => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.onscroll();
}
addEventListener("resize", hint);

/** Highlights a bookmaker's line while the pointer is on its row or on the line. */
addEventListener("pointerover", (event) => {
  const own = event.target.closest?.("[data-line]")?.dataset.line;
  for (const path of document.querySelectorAll(".price-chart [data-line]")) {
    path.classList.toggle("hot", path.dataset.line === own);
  }
});

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);

if (!recall()) {
  localise();
  hint();
  // A page requested with filters has only the matching events: fetch all events and filter them here.
  if (find && (find.value || competition.value || day.value)) afresh().catch(() => {});
  else filter();
  connect();
}
