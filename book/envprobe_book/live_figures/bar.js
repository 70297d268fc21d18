// The bar: budget and threshold, regime and profile, for every figure of a page.
//
// A classic script. It makes `EnvProbe.bar`:
//
//   open(own, {root, moves, inline, readers})
//                                       show the bar, which begins at a page's own setting. A page whose setting
//                                       has more knobs gives a reader of each: (text of the address, setting
//                                       so far) => value, or undefined where it means none
//   setting()                           {budget, threshold, regime, profile, ...} as the reader has set them
//   isOwn()                             whether that is the page's own
//   move(changes)                       set some of them; `rest()` goes back to the page's own
//   go(address)                         set all of them as an address says
//   refused()                           the knobs whose text in the address last read means nothing
//   address()                           this page's, with the reader's values
//   follow(listener)                    called at each move; returns what ends that
//   shade(past, text)                   the stretch of thresholds from 0 in which nothing changes
//
// The values stand in the address, and go with the reader to the next page of the book.
(() => {
  "use strict";

  const { engine, dom: { element, say, KEEPS_KEYS } } = globalThis.EnvProbe;
  const HIGHEST = 4, STEP = 0.05; // of the threshold: a score is the sum of four terms of at most 1
  const LATER = 250; // milliseconds; browsers refuse to rewrite an address many times a second
  const SHARED = ["budget", "threshold", "regime", "profile"]; // by all pages of the book
  const NUMBERS = ["budget", "threshold"];

  let own = null, now = null, parts = null, timer = 0, wrong = [];
  const bars = new Set(); // in a notebook each figure has one; all show the same setting
  const listeners = new Set();

  const horizonOf = (setting) => setting.horizon ?? engine.names().regimes[setting.regime ?? "S2"].horizon;
  const budgetOf = (setting) => setting.budget ?? engine.names().budgets[horizonOf(setting)];

  function setting() {
    return { ...now };
  }

  const isOwn = () => [...SHARED, ...Object.keys(own)].every((knob) => now[knob] === own[knob]);

  const among = (text, known) => (Object.hasOwn(known, text) ? text : undefined);

  function numberIn(text, least, most, isWhole) {
    const value = (isWhole ? /^\d+$/ : /^\d+(\.\d+)?$/).test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  }

  // What an address says of each knob, in the order in which one bounds the next.
  let readers = {
    regime: (text) => among(text, engine.names().regimes),
    profile: (text) => among(text, engine.names().profiles),
    horizon: (text) => numberIn(text, 1, engine.names().budgets.length - 1, true),
    budget: (text, setting) => numberIn(text, 0, horizonOf(setting), true),
    threshold: (text) => numberIn(text, 0, HIGHEST, false),
  };

  // A slider with its name and value.
  function slider(knob, name, most, step) {
    const input = element("input", { type: "range", min: 0, max: most, step, "data-knob": knob, ...KEEPS_KEYS });
    const output = element("output");
    input.addEventListener("input", () => move({ [knob]: Number(input.value) }));
    const label = element("label", { class: "live-knob" }, element("span", {}, name), input, output);
    return { label, input, output };
  }

  function choice(knob, name, known, titles) {
    const options = known.map((one) => element("option", { value: one }, titles[one]?.title ? `${one}: ${titles[one].title}` : one));
    const select = element("select", { "data-knob": knob, ...KEEPS_KEYS }, ...options);
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
    const back = element("button", { type: "button", class: "live-back" }, "Back", element("span", { class: "live-back-long" }, " to this page’s values"));
    back.addEventListener("click", () => {
      rest();
      budget.input.focus({ preventScroll: true }); // the button is gone
    });
    const said = element("p", { class: "live-said", role: "status" });
    const shown = Object.entries(choices).filter(([knob]) => moves.includes(knob)).map(([, { label }]) => label);
    const more = element("details", { class: "live-more" }, element("summary", {}, "More"), ...shown);
    const name = "Budget and threshold of the figures that move";
    const bar = element("div", { class: "live-bar", role: "group", "aria-label": name });
    bar.append(budget.label, threshold.label, ...(shown.length ? [more] : []), back, said);
    if (root === document.body) (document.querySelector("#pst-skip-link") ?? root).after(bar); // before the article, for the keyboard
    else root.append(bar);
    return { root: bar, budget, threshold, choices, back, said };
  }

  function update(bar) {
    const budget = budgetOf(now);
    bar.budget.input.max = horizonOf(now);
    bar.budget.input.value = budget;
    bar.budget.input.setAttribute("aria-valuetext", `${budget} ${budget === 1 ? "probe" : "probes"} of ${horizonOf(now)} steps`);
    bar.budget.output.textContent = budget;
    bar.threshold.input.value = now.threshold;
    bar.threshold.output.textContent = now.threshold.toFixed(2);
    bar.threshold.input.setAttribute("aria-valuetext", `a score of ${now.threshold.toFixed(2)}`);
    for (const [knob, { select }] of Object.entries(bar.choices)) if (now[knob]) select.value = now[knob];
    bar.back.hidden = isOwn();
  }

  // The values that an address names; what cannot be meant is left out.
  function read(address) {
    const asked = new URL(address, location.href).searchParams, found = {};
    wrong = [];
    for (const [knob, reader] of Object.entries(readers)) {
      if (!asked.has(knob) || own[knob] === undefined) continue;
      const value = reader(asked.get(knob), { ...own, ...found });
      if (value === undefined) wrong.push(knob);
      else found[knob] = value;
    }
    return found;
  }

  // An address with the reader's values of some knobs; others of its query stay.
  function carried(address, knobs) {
    const url = new URL(address, location.href);
    for (const knob of knobs) {
      if (now[knob] === own[knob] || now[knob] === null || now[knob] === undefined) url.searchParams.delete(knob);
      else url.searchParams.set(knob, now[knob]);
    }
    url.search = url.search.replaceAll("%2C", ",").replaceAll("%3A", ":"); // as a person would write it
    return url.href;
  }

  const address = () => carried(location.href, Object.keys(readers));

  function writeAddress() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      try { history.replaceState(history.state, "", address()); } catch { /* a page in a frame */ }
    }, LATER);
  }

  // A link to another page of the book takes the values along.
  function takeAlong(event) {
    const link = event.target.closest?.("a[href]");
    if (!link || isOwn()) return;
    const url = new URL(link.href, location.href);
    const here = location.href.replace(/[?#].*$/, "");
    const isPage = url.protocol === location.protocol && url.host === location.host && /(\.html|\/)$/.test(url.pathname);
    if (isPage && url.href.replace(/[?#].*$/, "") !== here) link.href = carried(url.href, SHARED);
  }

  function move(changes) {
    const before = JSON.stringify(now);
    now = { ...now, ...changes };
    if (now.budget !== null && now.budget > horizonOf(now)) now.budget = horizonOf(now);
    if (now.budget !== null && own.budget === null && now.budget === budgetOf({ ...now, budget: null })) now.budget = null;
    bars.forEach(update);
    document.documentElement.classList.toggle("live-is-moved", !isOwn());
    if (JSON.stringify(now) === before) return;
    if (!parts?.inline) writeAddress();
    for (const listener of listeners) listener(setting());
  }

  function rest() {
    move({ ...own });
  }

  function go(to) {
    move({ ...own, ...read(to) });
  }

  // Show the bar: fixed at the page's edge, or in a notebook above a figure.
  function open(given, { root = document.body, moves = SHARED, inline = false, readers: more = {} } = {}) {
    if (!own) {
      readers = { ...readers, ...more };
      own = { ...given };
      now = { ...given };
      parts = { inline };
      if (!inline) {
        Object.assign(now, read(location.href));
        document.addEventListener("click", takeAlong, true);
        document.documentElement.classList.add("has-live-bar");
        document.documentElement.classList.toggle("live-is-moved", !isOwn());
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
      say(bar.said, text);
    }
  }

  globalThis.EnvProbe.bar = { open, setting, own: () => ({ ...own }), isOwn, move, rest, go, address, refused: () => wrong, follow, shade, budgetOf, horizonOf, numberIn, opened: () => own !== null };
})();
