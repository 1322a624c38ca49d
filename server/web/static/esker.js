// The page works without this script, which searches during typing, ticks boxes together and updates figures.
"use strict";

const PAUSE_MS = 200;

for (const form of document.querySelectorAll("form[data-live]")) {
  const shown = document.getElementById(form.dataset.live);
  const said = document.querySelector("main [role=status]");
  let timer = 0;
  let latest = 0;

  const search = async () => {
    const asked = (latest += 1);
    const query = new URLSearchParams(new FormData(form));
    history.replaceState(null, "", `${form.action}?${query}`);
    query.set("only_hits", "true");
    const answer = await fetch(`${form.action}?${query}`);
    // An older question may be answered later.
    if (asked !== latest || !answer.ok) return;
    shown.innerHTML = await answer.text();
    // A screen reader reads how many were found, and not every hit at each pause of typing.
    said.textContent = [...shown.querySelectorAll(":scope > p")].map((line) => line.textContent).join(" ");
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search().catch(() => form.submit()), PAUSE_MS);
  });
}

// Without this script each box is ticked by itself.
for (const every of document.querySelectorAll("[data-all]")) {
  every.parentElement.hidden = false;
  every.addEventListener("input", () => {
    for (const box of document.getElementsByName(every.dataset.all)) box.checked = every.checked;
  });
}

const figures = document.querySelectorAll("[data-figure]");
const news = document.querySelector("[data-news]");

if ((figures.length || news) && "EventSource" in window) {
  let events = null;
  // The page knows nothing of rows that were written after it was made, also if its stream begins later.
  let since = news?.dataset.since ?? "";

  const show = (event) => {
    since = event.lastEventId;
    const found = JSON.parse(event.data);
    for (const figure of figures) {
      figure.textContent = found[figure.dataset.figure].toLocaleString("en");
    }
    if (!news || !found.new_memories) return;
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = `${found.new_memories} new. Show them`;
    news.replaceChildren(link);
  };

  // Connections are scarce, so a hidden page closes its connection.
  const listen = () => {
    if (document.hidden) {
      events?.close();
      events = null;
    } else if (!events) {
      events = new EventSource(since ? `/ui/events?since=${since}` : "/ui/events");
      events.addEventListener("figures", show);
    }
  };

  document.addEventListener("visibilitychange", listen);
  listen();
}
