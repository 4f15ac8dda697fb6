// The board's own script: asks for the prices of the next snapshot and changes the cells that moved.

const table = document.querySelector("table.board");
const find = document.getElementById("find");

if (table) {
  const every = Math.max(1000, Number(table.dataset.every));
  setInterval(() => { if (!document.hidden) refresh().catch(() => {}); }, every);
}

/** Asks with what the browser holds: while nothing was published, the answer is a few bytes. */
async function refresh() {
  const answer = await fetch(table.dataset.prices, { cache: "no-cache" });
  if (!answer.ok) return;
  const { cut, cells } = await answer.json();
  if (String(cut) === table.dataset.cut) return;
  table.dataset.cut = cut;
  const at = document.getElementById("cut");
  at.dateTime = new Date(cut).toISOString();
  at.textContent = new Date(cut).toUTCString().replace("GMT", "UTC");
  for (const [key, cell] of Object.entries(cells)) change(document.getElementById(key), cell);
}

function change(place, [price, point, best, stale]) {
  if (!place) return;
  place.classList.toggle("best", best);
  place.classList.toggle("stale", stale);
  const shown = place.querySelector("b");
  const line = place.querySelector("i");
  if (line && line.textContent !== point) line.textContent = point;
  if (shown.textContent === price) return;
  const move = worth(price) > worth(shown.textContent) ? "up" : "down";
  shown.textContent = price;
  place.classList.remove("up", "down");
  // Reading a size between the two makes the browser start the flash anew.
  void place.offsetWidth;
  place.classList.add(move);
}

/** What a price pays for one, in whichever format it is written. */
function worth(text) {
  if (text.includes("/")) {
    const [profit, stake] = text.split("/").map(Number);
    return profit / stake;
  }
  const number = Number(text);
  if (!/^[+-]/.test(text)) return number - 1;
  return number > 0 ? number / 100 : -100 / number;
}

if (find) {
  find.closest("label").hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    for (const event of document.querySelectorAll("tbody[data-event]")) {
      event.hidden = !event.dataset.event.toLowerCase().includes(wanted);
    }
  });
}
