// Enhancements of the pages; everything works without them.

/** Copy buttons: hidden unless this script runs. */
function offerCopies(within) {
  for (const button of within.querySelectorAll("[data-copy]")) {
    const name = button.dataset.copy;
    const source = name ? document.getElementById(name) : button.parentElement.querySelector("code");
    if (!source || !navigator.clipboard) continue;
    button.hidden = false;
    const label = button.innerHTML;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent.trim());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.innerHTML = label; }, 2000);
    });
  }
}
offerCopies(document);

/** A selection that shows another page submits its form at once. */
for (const choice of document.querySelectorAll("select[data-submit]")) {
  choice.addEventListener("change", () => choice.form.requestSubmit());
  for (const button of choice.form.querySelectorAll("button")) button.hidden = true;
}

/** Updates the explorer's code lines while the form is filled in; the service renders them. */
const explorer = document.querySelector("form[data-explore]");
if (explorer) {
  let latest = 0;
  explorer.addEventListener("change", async () => {
    const turn = ++latest;
    const fields = new URLSearchParams(new FormData(explorer));
    fields.set("act", "show");
    const answer = await fetch(explorer.action, { method: "POST", body: fields });
    if (!answer.ok || turn !== latest) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const lines = page.getElementById("lines");
    if (!lines) return;
    document.getElementById("lines").replaceWith(lines);
    offerCopies(lines);
  });
}

/** Refreshes figures while the page is visible; the time next to them shows their age. */
if (document.querySelector("[data-renew]")) {
  setInterval(async () => {
    const old = document.querySelector("[data-renew]");
    if (document.hidden || old.contains(document.activeElement)) return;
    const answer = await fetch(location.pathname).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-renew]");
    // Without them this is another page: the session has expired.
    if (fresh) old.replaceWith(fresh);
    else location.reload();
  }, 10_000);
}

// On a narrow screen the current entry may be outside the visible part of the bar.
for (const here of document.querySelectorAll(".nav [aria-current], .subnav [aria-current]")) {
  const bar = here.parentElement;
  bar.scrollLeft = here.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;
}

/** Submits a form once, however often its button is pressed. */
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}

// Returning with the browser's Back button makes the forms usable again.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});
