// The page works without this script; it only searches while one types.
"use strict";

const PAUSE_MS = 200;

for (const form of document.querySelectorAll("form[data-live]")) {
  const shown = document.getElementById(form.dataset.live);
  let timer = 0;
  let latest = 0;

  const search = async () => {
    const asked = (latest += 1);
    const query = new URLSearchParams(new FormData(form));
    history.replaceState(null, "", `${form.action}?${query}`);
    query.set("only_hits", "true");
    const answer = await fetch(`${form.action}?${query}`);
    // An older question may be answered later.
    if (asked === latest && answer.ok) shown.innerHTML = await answer.text();
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search().catch(() => form.submit()), PAUSE_MS);
  });
}
