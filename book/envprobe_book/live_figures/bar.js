// The bar: budget and threshold, regime and profile, for every figure of a page.
//
// A classic script. It makes `EnvProbe.bar`:
//
//   open(own, {root, horizon, moves})   show the bar, which begins at a page's own setting
//   setting()                           {budget, threshold, regime, profile} as the reader has set them
//   isOwn()                             whether that is the page's own
//   move(changes)                       set some of them; `rest()` goes back to the page's own
//   follow(listener)                    called at each move; returns what ends that
//   shade(past, text)                   the stretch of thresholds from 0 in which nothing changes
//
// The values stand in the address, and go with the reader to the next page of the book.
(() => {
  "use strict";

  const { engine } = globalThis.EnvProbe;
  const HIGHEST = 4, STEP = 0.05; // of the threshold: a score is the sum of four terms of at most 1
  const LATER = 250; // milliseconds; browsers refuse to rewrite an address many times a second
  const KNOBS = ["budget", "threshold", "regime", "profile"];
  const NUMBERS = ["budget", "threshold"];

  let own = null, now = null, parts = null, timer = 0;
  const bars = new Set(); // in a notebook each figure has one; all show the same setting
  const listeners = new Set();

  const horizonOf = (setting) => engine.names().regimes[setting.regime ?? "S2"].horizon;
  const budgetOf = (setting) => setting.budget ?? engine.names().budgets[horizonOf(setting)];

  function setting() {
    return { ...now };
  }

  const isOwn = () => KNOBS.every((knob) => now[knob] === own[knob]);

  function element(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // A slider with its name and value.
  function slider(knob, name, most, step) {
    const input = element("input", { type: "range", min: 0, max: most, step, "data-knob": knob, "data-lm-suppress-shortcuts": "true" });
    const output = element("output");
    input.addEventListener("input", () => move({ [knob]: Number(input.value) }));
    const label = element("label", { class: "live-knob" }, element("span", {}, name), input, output);
    return { label, input, output };
  }

  function choice(knob, name, known, titles) {
    const options = known.map((one) => element("option", { value: one }, titles[one]?.title ? `${one}: ${titles[one].title}` : one));
    const select = element("select", { "data-knob": knob, "data-lm-suppress-shortcuts": "true" }, ...options);
    select.addEventListener("change", () => move({ [knob]: select.value, ...(knob === "regime" ? { budget: null } : {}) }));
    return { label: element("label", { class: "live-choice" }, element("span", {}, name), select), select };
  }

  function make(root, moves) {
    const known = engine.names();
    const budget = slider("budget", "Budget", horizonOf(now), 1);
    const threshold = slider("threshold", "Threshold", HIGHEST, STEP);
    const choices = {
      regime: choice("regime", "Regime", Object.keys(known.regimes), known.regimes),
      profile: choice("profile", "Profile of the simulated agent", Object.keys(known.profiles), {}),
    };
    const back = element("button", { type: "button", class: "live-back" }, "Back to this page’s values");
    back.addEventListener("click", rest);
    const said = element("p", { class: "live-said", role: "status" });
    const shown = Object.entries(choices).filter(([knob]) => moves.includes(knob)).map(([, { label }]) => label);
    const more = element("details", { class: "live-more" }, element("summary", {}, "More"), ...shown);
    const name = "Budget and threshold of every figure here";
    const bar = element("div", { class: "live-bar", role: "group", "aria-label": name });
    bar.append(budget.label, threshold.label, ...(shown.length ? [more] : []), back, said);
    root.append(bar);
    return { root: bar, budget, threshold, choices, back, said };
  }

  function update(bar) {
    const budget = budgetOf(now);
    bar.budget.input.max = horizonOf(now);
    bar.budget.input.value = budget;
    bar.budget.output.textContent = budget;
    bar.threshold.input.value = now.threshold;
    bar.threshold.output.textContent = now.threshold.toFixed(2);
    for (const [knob, { select }] of Object.entries(bar.choices)) if (now[knob]) select.value = now[knob];
    bar.back.hidden = isOwn();
  }

  // The values that the address names; what cannot be meant is left out.
  function fromAddress() {
    const known = engine.names(), asked = new URLSearchParams(location.search), found = {};
    if (Object.hasOwn(known.regimes, asked.get("regime"))) found.regime = asked.get("regime");
    if (Object.hasOwn(known.profiles, asked.get("profile"))) found.profile = asked.get("profile");
    const budget = Number(asked.get("budget")), threshold = Number(asked.get("threshold"));
    const horizon = horizonOf({ ...now, ...found });
    if (asked.get("budget") && Number.isInteger(budget) && budget >= 0 && budget <= horizon) found.budget = budget;
    if (asked.get("threshold") && threshold >= 0 && threshold <= HIGHEST) found.threshold = threshold;
    for (const knob of Object.keys(found)) if (own[knob] === undefined) delete found[knob];
    return found;
  }

  // An address with the reader's values; others of its query stay.
  function carried(address) {
    const url = new URL(address, location.href);
    for (const knob of KNOBS) {
      if (now[knob] === own[knob] || now[knob] === null || now[knob] === undefined) url.searchParams.delete(knob);
      else url.searchParams.set(knob, now[knob]);
    }
    return url.href;
  }

  function writeAddress() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      try { history.replaceState(history.state, "", carried(location.href)); } catch { /* a page in a frame */ }
    }, LATER);
  }

  // A link to another page of the book takes the values along.
  function takeAlong(event) {
    const link = event.target.closest?.("a[href]");
    if (!link || isOwn()) return;
    const url = new URL(link.href, location.href);
    const here = location.href.replace(/[?#].*$/, "");
    const isPage = url.protocol === location.protocol && url.host === location.host && /(\.html|\/)$/.test(url.pathname);
    if (isPage && url.href.replace(/[?#].*$/, "") !== here) link.href = carried(url.href);
  }

  function move(changes) {
    const before = JSON.stringify(now);
    now = { ...now, ...changes };
    if (now.budget !== null && now.budget > horizonOf(now)) now.budget = horizonOf(now);
    if (now.budget !== null && own.budget === null && now.budget === budgetOf({ ...now, budget: null })) now.budget = null;
    bars.forEach(update);
    if (JSON.stringify(now) === before) return;
    if (!parts?.inline) writeAddress();
    for (const listener of listeners) listener(setting());
  }

  function rest() {
    move({ ...own });
  }

  // Show the bar: fixed at the page's edge, or in a notebook above a figure.
  function open(given, { root = document.body, moves = KNOBS, inline = false } = {}) {
    if (!own) {
      own = { ...given };
      now = { ...given };
      parts = { inline };
      if (!inline) {
        Object.assign(now, fromAddress());
        document.addEventListener("click", takeAlong, true);
        document.documentElement.classList.add("has-live-bar");
      }
    } else if (!inline) return null;
    const bar = make(root, moves.filter((knob) => !NUMBERS.includes(knob) && given[knob] !== undefined));
    bars.add(bar);
    update(bar);
    return () => {
      bars.delete(bar);
      bar.root.remove();
    };
  }

  function follow(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  function shade(past, text) {
    for (const bar of bars) {
      bar.threshold.input.style.setProperty("--dead", `${(100 * Math.min(past, HIGHEST)) / HIGHEST}%`);
      if (bar.said.textContent !== text) bar.said.textContent = text;
    }
  }

  globalThis.EnvProbe.bar = { open, setting, own: () => ({ ...own }), isOwn, move, rest, follow, shade, budgetOf, opened: () => own !== null };
})();
