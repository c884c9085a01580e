"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const table = document.getElementById("verdicts");
  const controls = document.getElementById("controls");
  const shown = document.getElementById("shown");
  const openAll = document.getElementById("open-all");
  const names = ["q", "paper", "kind", "form", "verdict"];
  const order = ["error", "inconsistent", "fails", "inconclusive", "vacuous", "consistent", "holds"];
  const bodies = all("tbody", table).map((body, index) => ({
    body,
    index,
    text: body.textContent.toLowerCase().replace(/\s+/g, " "),
    rows: all("tr.judged", body),
    matching: all("tr.judged", body),
  }));
  let sorting = { key: "", down: false };

  const rowMatches = ({ dataset }, { form, verdict }) =>
    (!form || dataset.form === form) &&
    (!verdict ||
      (verdict === "unexpected" ? dataset.expected === "no" : dataset.verdict === verdict));

  function filter(chosen) {
    const searched = (chosen.q || "").toLowerCase().trim().split(/\s+/);
    let statements = 0;
    let forms = 0;
    for (const group of bodies) {
      const { body, rows, text } = group;
      const fits =
        (!chosen.paper || body.dataset.paper === chosen.paper) &&
        (!chosen.kind || body.dataset.kind === chosen.kind) &&
        searched.every((word) => text.includes(word));
      group.matching = fits ? rows.filter((row) => rowMatches(row, chosen)) : [];
      body.hidden = !group.matching.length;
      for (const row of rows) row.classList.toggle("aside", !group.matching.includes(row));
      statements += !body.hidden;
      forms += group.matching.length;
    }
    for (const part of all("main [data-paper]:not(tbody)"))
      part.hidden = Boolean(chosen.paper) && part.dataset.paper !== chosen.paper;
    const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
    shown.textContent =
      `${count(statements, "statement")} of ${bodies.length}, ${count(forms, "form")} shown` +
      (statements ? "" : ": nothing fits; clear the filters");
  }

  const keys = {
    name: ({ body }) => [body.id],
    kind: ({ body }) => [body.dataset.kind],
    verdict: ({ matching }) => matching.map(({ dataset }) => order.indexOf(dataset.verdict)),
    samples: ({ matching }) => matching.map(({ dataset }) => Number(dataset.samples)),
  };

  const compare = (a, b) =>
    typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;

  // A statement is sorted by its first form in the chosen direction; without a form it comes last.
  function sort() {
    const { key, down } = sorting;
    const sign = down ? -1 : 1;
    const entry = (group) => {
      const values = key ? keys[key](group) : [group.index];
      return values.sort((a, b) => sign * compare(a, b))[0];
    };
    const ranked = bodies.map((group) => [entry(group), group]);
    ranked.sort(([a, first], [b, second]) => {
      if (a === undefined || b === undefined)
        return (a === undefined) - (b === undefined) || first.index - second.index;
      return sign * compare(a, b) || first.index - second.index;
    });
    table.append(...ranked.map(([, { body }]) => body));
    for (const head of all("thead th[data-sort]", table)) {
      const state = head.dataset.sort === key ? (down ? "descending" : "ascending") : "none";
      head.setAttribute("aria-sort", state);
    }
  }

  const state = () => Object.fromEntries(names.map((name) => [name, controls.elements[name].value]));

  function update() {
    filter(state());
    sort();
  }

  function remember() {
    const chosen = Object.entries(state()).filter(([, value]) => value);
    if (sorting.key) chosen.push(["sort", sorting.key]);
    if (sorting.down) chosen.push(["down", "1"]);
    const hash = new URLSearchParams(chosen).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function choose(chosen) {
    for (const name of names) {
      const field = controls.elements[name];
      field.value = chosen.get(name) ?? "";
      if (field.selectedIndex === -1) field.value = "";
    }
    const key = chosen.get("sort") ?? "";
    sorting = { key: Object.hasOwn(keys, key) ? key : "", down: chosen.get("down") === "1" };
    update();
  }

  function reveal(id) {
    const target = document.getElementById(id);
    if (!target) return;
    if (target.hidden || target.closest("[hidden]")) choose(new URLSearchParams());
    if (target.matches("tbody")) target.querySelector("details").open = true;
    target.scrollIntoView();
  }

  function follow() {
    const hash = location.hash.slice(1);
    if (hash.includes("=")) choose(new URLSearchParams(hash));
    else if (hash) reveal(decodeURIComponent(hash));
  }

  for (const head of all("thead th", table)) {
    const key = head.dataset.sort;
    if (!key) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    // The clicks sort upwards, then downwards, then in the papers' order again.
    button.addEventListener("click", () => {
      if (sorting.key !== key) sorting = { key, down: false };
      else sorting = sorting.down ? { key: "", down: false } : { key, down: true };
      update();
      remember();
    });
  }

  controls.addEventListener("input", () => (update(), remember()));
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("reset", () => setTimeout(() => (update(), remember())));
  openAll.addEventListener("click", () => {
    const open = openAll.getAttribute("aria-pressed") === "false";
    for (const { body } of bodies) for (const part of all("details", body)) part.open = open;
    openAll.setAttribute("aria-pressed", String(open));
    openAll.textContent = open ? "Close all" : "Open all";
  });

  if (navigator.clipboard)
    for (const line of all(".command")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(line.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
      line.append(button);
    }

  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const stored = (() => {
    try {
      return localStorage;
    } catch {
      return null; // some browsers refuse storage to local files
    }
  })();
  function dress(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
  }
  let current = themes.includes(stored?.getItem("theme")) ? stored.getItem("theme") : "auto";
  theme.addEventListener("click", () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length];
    stored?.setItem("theme", current);
    dress(current);
  });

  dress(current);
  theme.hidden = controls.hidden = false;
  update();
  addEventListener("hashchange", follow);
  follow();
})();
