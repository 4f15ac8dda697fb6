// Enhancements of the documentation: search, and the remembered language of examples.

const LANGUAGE = "linesman-language";
const FOUND_MAX = 12;

/** Selecting a language selects it for all examples, on this page and others. */
function chooseLanguage(language) {
  for (const choice of document.querySelectorAll(`.sample input[value="${CSS.escape(language)}"]`)) {
    choice.checked = true;
  }
}

function remembered() {
  try {
    return localStorage.getItem(LANGUAGE);
  } catch {
    return null; // Without storage the choice applies to this page only.
  }
}

for (const choice of document.querySelectorAll(".sample input")) {
  choice.addEventListener("change", () => {
    const top = choice.getBoundingClientRect().top;
    chooseLanguage(choice.value);
    // Examples above may have changed their height; keep the selected one in place.
    scrollBy(0, choice.getBoundingClientRect().top - top);
    try {
      localStorage.setItem(LANGUAGE, choice.value);
    } catch {
      // As above.
    }
  });
}
if (remembered()) chooseLanguage(remembered());

/** Scrolls the navigation to the page's entry and to the section being read. */
const nav = document.querySelector(".docs-side");
const current = document.querySelector(".docs-nav [aria-current]");
if (nav && current) {
  nav.scrollTop = current.offsetTop - nav.clientHeight / 3;
  const marks = new Map();
  for (const link of current.parentElement.querySelectorAll("ul a")) {
    const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (heading) marks.set(heading, link);
  }
  const mark = () => {
    let here = null;
    for (const [heading, link] of marks) {
      link.classList.remove("here");
      if (heading.getBoundingClientRect().top < innerHeight / 3) here = link;
    }
    here?.classList.add("here");
  };
  addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  mark();
}

/** Search: the index is fetched at the first keystroke and searched here. */
const form = document.querySelector(".docs-search");
if (form) {
  const field = form.querySelector("input");
  const list = form.querySelector("ol");
  const report = form.querySelector("[role=status]");
  let index = null;
  form.hidden = false;

  const load = async () => {
    if (index) return index;
    const answer = await fetch(form.dataset.index);
    if (!answer.ok) throw new Error(`the index answers ${answer.status}`);
    const entries = await answer.json();
    index = entries.map(([path, page, heading, text]) => ({
      path, page, heading, text, low: [page, heading, text].map((part) => part.toLowerCase()),
    }));
    return index;
  };

  /** Weights: page title, then heading, then text; all words must occur. */
  const weigh = ({ low: [page, heading, text] }, words) => {
    let sum = 0;
    for (const word of words) {
      const weight = (heading.includes(word) ? 6 : 0) + (page.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
      if (!weight) return 0;
      sum += weight;
    }
    return sum + (heading === "" ? 1 : 0);
  };

  const excerpt = (text, word) => {
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 30);
    return (at ? "…" : "") + text.slice(at, at + 110);
  };

  const show = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.hidden = words.length === 0;
    report.textContent = "";
    if (!words.length) return;
    let found;
    try {
      found = (await load()).map((entry) => [weigh(entry, words), entry]).filter(([weight]) => weight);
    } catch (error) {
      report.textContent = "The search is not available at the moment.";
      list.replaceChildren();
      throw error;
    }
    found.sort(([one], [other]) => other - one);
    list.replaceChildren(...found.slice(0, FOUND_MAX).map(([, entry]) => {
      const item = document.createElement("li");
      const link = item.appendChild(document.createElement("a"));
      link.href = entry.path;
      link.textContent = entry.heading ? `${entry.page} › ${entry.heading}` : entry.page;
      link.appendChild(document.createElement("small")).textContent = excerpt(entry.text, words[0]);
      return item;
    }));
    report.textContent = found.length ? `${found.length} found` : "Nothing found";
    if (!found.length) {
      const none = list.appendChild(document.createElement("li"));
      none.textContent = "Nothing found.";
    }
  };

  field.addEventListener("input", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  form.addEventListener("keydown", (event) => {
    const links = [field, ...list.querySelectorAll("a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      field.value = "";
      list.hidden = true;
      field.focus();
    } else if (step && !list.hidden) {
      event.preventDefault();
      links[links.indexOf(document.activeElement) + step]?.focus();
    }
  });
  list.addEventListener("click", () => { list.hidden = true; });
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    }
  });
}
