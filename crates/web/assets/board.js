// The board's own script: takes what each publication changed and sets the cells that moved; finds events at once.
// Without it the pages show the same, as of when they were asked for.

const table = () => document.querySelector("table.board");
const find = document.getElementById("find");
const dot = document.getElementById("live");
const said = document.getElementById("live-text");

/** How long to wait before another try where the service had no place, in milliseconds. */
const LATER = 30_000;

let source = null;
let seen = table()?.dataset.cut;
let retry = 0;

function connect() {
  const shown = table();
  if (!shown || source || document.hidden) return;
  source = new EventSource(`${shown.dataset.stream}&since=${seen}`);
  source.addEventListener("open", () => say("on", "Live"));
  source.addEventListener("delta", (event) => {
    seen = event.lastEventId;
    apply(JSON.parse(event.data));
  });
  source.addEventListener("whole", (event) => {
    seen = event.lastEventId;
    afresh().catch(() => {});
  });
  source.addEventListener("error", () => {
    say("off", "Not live at the moment");
    // A browser comes back by itself, unless it was turned away.
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

/** What changed, put where it belongs. Everything but whole events goes in as text. */
function apply(delta) {
  const at = document.getElementById("cut");
  at.dateTime = delta.cut;
  at.textContent = delta.cut.slice(11, 19);
  for (const cell of table().querySelectorAll("td.up, td.down")) cell.classList.remove("up", "down");
  for (const [column, late] of delta.heads) head(column, late);
  for (const [id, html] of delta.events) place(id, html);
  if (delta.order) arrange(delta.order);
  for (const [id, row, column, dress, left, text, move] of delta.cells) {
    const cell = line(id, row)?.querySelectorAll("td.p")[column];
    if (cell) set(cell, dress, left, text, move);
  }
  for (const [id, row, price, who] of delta.best) {
    const cell = line(id, row)?.querySelector("td.best");
    if (!cell) continue;
    cell.querySelector("b").textContent = price;
    cell.querySelector("small").textContent = who;
  }
  for (const [id, row, d] of delta.sparks) {
    line(id, row)?.querySelector("td.tr path")?.setAttribute("d", d);
  }
  for (const [id, score] of delta.scores) {
    const shown = document.getElementById(id)?.querySelector(".score");
    if (shown) shown.textContent = score;
  }
  filter();
  // An event's own page has more than the table; that is asked for when something moved.
  const moved = delta.cells.length + delta.events.length + delta.scores.length > 0;
  if (moved && document.querySelector("[data-swap]")) swap().catch(() => {});
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
    // Reading a size between the two makes the browser start the flash anew.
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

/** An event that is new, or whose rows are others, as the service renders it. */
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
  order.forEach((id, at) => {
    const part = document.getElementById(id);
    if (part && table().tBodies[at] !== part) table().insertBefore(part, table().tBodies[at] ?? null);
  });
}

async function fetched() {
  const answer = await fetch(location.href, { cache: "no-cache" });
  if (!answer.ok) throw new Error("gone");
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** The whole screen anew, where the reader stays at the place they were. */
async function afresh() {
  const fresh = await fetched();
  const box = document.querySelector(".board-box");
  const [left, top] = [box?.scrollLeft ?? 0, box?.scrollTop ?? 0];
  document.getElementById("screen").replaceWith(fresh.getElementById("screen"));
  document.getElementById("cut").replaceWith(fresh.getElementById("cut"));
  document.querySelector(".board-box")?.scrollTo(left, top);
  seen = table()?.dataset.cut ?? seen;
  filter();
}

/** The parts around the table. */
async function swap() {
  const fresh = await fetched();
  for (const old of document.querySelectorAll("[data-swap]")) {
    const part = fresh.querySelector(`[data-swap=${old.dataset.swap}]`);
    if (part && !old.contains(document.activeElement)) old.replaceWith(part);
  }
}

function filter() {
  if (!find || !table()) return;
  const wanted = find.value.trim().toLowerCase();
  let left = 0;
  for (const part of table().tBodies) {
    part.hidden = !part.textContent.toLowerCase().includes(wanted);
    if (!part.hidden) left += 1;
  }
  const none = document.getElementById("none");
  if (none) none.hidden = left > 0;
}

if (find) {
  find.form.querySelector("button").hidden = true;
  // A page that came with a search has only what was found: it is asked for whole, and searched here.
  if (find.value) {
    const whole = new URL(location.href);
    whole.searchParams.delete("q");
    history.replaceState(null, "", whole);
    afresh().catch(() => {});
  }
  find.addEventListener("input", filter);
  find.form.addEventListener("submit", (event) => event.preventDefault());
}

document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
connect();
