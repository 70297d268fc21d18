// Live figures: each answers the bar with the engine's own episodes, and shows the page's values as a ghost.
//
// A classic script, the last of them. It makes `EnvProbe.live`:
//
//   show(root, figure)   put a figure into an element of a notebook, with a bar above it
//   follow()             say every sentence of the page anew
//   figures              those of the page, by name: {figure, setting, found, resamples}
//
// In a book's page each `.live-figure` holds its description as JSON (see figure.py) and the static figure,
// which is replaced. Sentences follow: `.live-told` says itself anew (see telling.js), so do numbers in
// `.live-number`; `.live-fixed` is what stands still. What they show wears `live-rough` while few seeds or resamples stand
// behind it, and `live-old` until the figure has followed the bar.
(() => {
  "use strict";

  const { engine, estimates, bar, answering, plotted, plot: makePlot, telling } = globalThis.EnvProbe;
  const SHADE = 500; // milliseconds without a move, after which the stretch of the threshold is looked for
  const NO_PLOT = { root: "", update() {}, close() {} }; // of numbers that sentences alone show
  const figures = {};

  const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

  // The setting of a figure under the bar: what it may not move stays its own.
  function settingOf(figure, moved) {
    const own = { ...figure.setting };
    for (const knob of figure.moves) if (moved[knob] !== undefined) own[knob] = moved[knob];
    return own;
  }

  function open(root, figure, place) {
    const isNumbers = figure.kind === "numbers", plot = isNumbers ? NO_PLOT : makePlot(figure);
    const note = Object.assign(document.createElement("p"), { className: "live-note" });
    note.setAttribute("role", "status");
    const printed = figure.rows.map((row) => row.found);
    const found = figure.rows.flatMap((row) => answering.partsOf(row).map((part) => row.found[part]));
    estimates.remember(answering.estimatesOf(figure.rows), figure.setting, figure, found);
    const state = { figure, setting: figure.setting, found: printed, resamples: figure.resamples, seeds: null, root: isNumbers ? null : plot.root };
    figures[figure.name] = state;

    function draw(setting, found, used) {
      Object.assign(state, { setting, found, ...used });
      const isPrinted = isSame(setting, figure.setting);
      plot.update(plotted(figure.rows, found), isPrinted ? null : plotted(figure.rows, printed));
      say();
    }

    function say() {
      const few = answering.said(state, figure.resamples);
      const moved = isSame(state.setting, figure.setting) ? "" : "Run in this page. Faint: this page’s own values. ";
      if (note.textContent !== moved + few) note.textContent = moved + few;
      follow();
    }

    // The page's own values are printed: nothing is to be found.
    function asked() {
      const setting = settingOf(figure, bar.setting());
      if (isSame(setting, figure.setting)) {
        draw(setting, printed, { resamples: figure.resamples, seeds: null });
        return null;
      }
      return { rows: figure.rows, setting, seeds: figure.seeds, resamples: figure.resamples };
    }

    root.dataset.settled = "yes";
    const { isSeen, close } = answering(root, {
      asked,
      always: isNumbers, // sentences anywhere may show them
      also: readersOf(figure.name).filter((one) => !root.contains(one)),
      draw: (wanted, found, used) => draw(wanted.setting, found, used),
      refuse: (sentence) => {
        note.textContent = `${sentence} The figure shows the values before.`;
      },
    });
    state.isSeen = isSeen;
    if (!isNumbers) place(plot.root, note);
    plot.update(plotted(figure.rows, printed), null);
    return () => {
      close();
      plot.close();
      delete figures[figure.name];
    };
  }

  // sentences that follow

  const READERS = "[data-told], [data-number]";

  function readersOf(name) {
    const said = JSON.stringify(name);
    return [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(READERS))].filter(({ dataset: own }) => (own.told ?? own.number).includes(said));
  }

  const isOld = ({ figure, setting }) => !isSame(setting, settingOf(figure, bar.setting()));
  const isRough = (state) => !answering.isWhole(state, state.figure.resamples);

  // How sure what a node shows is: it wears one mark.
  function mark(node, names) {
    const states = names.map((name) => figures[name]), old = states.some(isOld);
    node.classList.toggle("live-old", old);
    node.classList.toggle("live-rough", !old && states.some(isRough));
    node.classList.toggle("live-moved", !bar.isOwn());
  }

  function tell(span) {
    const slot = JSON.parse(span.dataset.told);
    if (!slot.figures.every((name) => figures[name])) return;
    const isHandle = slot.kind === "handle";
    if (isHandle) globalThis.EnvProbe.front?.hold(span);
    const text = isHandle ? knobOf(slot, bar.setting()) : slot.kind === "knob" ? knobOf(slot) : telling(slot, slot.of.map(readingOf), slot.figures.some((name) => isRough(figures[name])));
    if (span.textContent !== text) span.textContent = text;
    if (!isHandle) mark(span, slot.figures);
  }

  function readingOf([name, row, step]) {
    const { value, low, high } = figures[name].found[row].value;
    const [one, from, to] = step === undefined ? [value, low, high] : [value.at(step), low.at(step), high.at(step)];
    return { value: one ?? NaN, low: from ?? NaN, high: to ?? NaN }; // JSON has no NaN
  }

  // The setting that the figure's numbers belong to, which may not be the bar's yet.
  function knobOf({ figures: [name], knob, digits, unit }, setting = figures[name].setting) {
    const value = knob === "budget" ? bar.budgetOf(setting) : setting[knob];
    const text = telling.number(value, digits);
    return unit ? telling.inUnits(`${text} {unit}`, unit) : text;
  }

  // The first sentence, once it is final, for those who hear the page.
  const heard = Object.assign(document.createElement("p"), { className: "live-heard" });
  heard.setAttribute("role", "status");
  function announce() {
    const first = document.querySelector(".live-told")?.closest("p");
    if (!first || first.querySelector(".live-old, .live-rough")) return;
    if (!heard.isConnected) document.body.append(heard);
    else if (heard.dataset.said !== first.textContent) heard.textContent = first.textContent;
    heard.dataset.said = first.textContent;
  }

  function numberOf(/** @type {any[]} */ [name, row, part, step]) {
    const found = figures[name]?.found[row];
    if (!found) return undefined;
    const all = part === "x" ? found.x.value : found.value[part];
    return (step === undefined ? all : all.at(step)) ?? NaN; // JSON has no NaN
  }

  // A sentence that stands still says what it belongs to, once a slider has moved (`bar.css`).
  function stand(node) {
    const { budget, threshold, ...rest } = bar.own(), about = node.dataset.about;
    const probes = telling.inUnits(`${bar.budgetOf({ budget, threshold, ...rest })} {unit}`, "probe");
    node.dataset.belongs = about ? ` (about ${about}, which no slider moves)` : ` (at ${probes} and threshold ${telling.number(threshold, 2)}, this page’s own)`;
  }

  let waiting = 0;
  function follow() {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      for (const state of Object.values(figures)) state.root?.classList.toggle("live-behind", isOld(state));
      document.querySelectorAll(".live-told").forEach(tell);
      if (bar.opened()) document.querySelectorAll(".live-fixed:not([data-belongs])").forEach(stand);
      document.querySelectorAll(".live-number").forEach(showNumber);
      announce();
    });
  }

  function showNumber(span) {
    const value = numberOf(JSON.parse(span.dataset.number));
    if (value === undefined) return;
    const [name] = JSON.parse(span.dataset.number);
    const text = telling.number(value, Number(span.dataset.digits), { signed: Boolean(span.dataset.sign), isRough: isRough(figures[name]) });
    if (span.textContent !== text) span.textContent = text;
    mark(span, [name]);
  }

  // the stretch of the threshold in which the gate always opens

  const gated = (figure) => figure.rows.flatMap((row) => answering.partsOf(row).flatMap((part) =>
    row[part].arms.flatMap((arm) => row[part].worlds.map((world) => [arm, world]))));

  // The lowest score at which a probe was fired with the gate wide open: below it no threshold changes anything.
  async function deadZone(signal) {
    const known = engine.names(), seen = Object.values(figures).filter((one) => one.isSeen());
    const moved = bar.setting(), wanted = new Map();
    for (const { figure } of seen) {
      for (const [arm, world] of gated(figure)) {
        if (known.policies[arm.policy].threshold === null) continue;
        const condition = estimates.conditionOf(arm, world, { ...settingOf(figure, moved), threshold: 0 });
        const key = JSON.stringify([condition, figure.seeds]);
        wanted.set(key, { condition, seeds: figure.seeds });
      }
    }
    let lowest = Infinity;
    for (const { condition, seeds } of wanted.values()) {
      const [{ logs }] = await engine.run([condition], seeds, { logs: ["probe", "score"], signal, patient: true });
      logs.probe.values.forEach((field, i) => {
        if (field >= 0 && logs.score.values[i] < lowest) lowest = logs.score.values[i];
      });
    }
    return lowest;
  }

  // All that a move runs is run once before the first: browsers make machine code of what has run.
  async function rehearse(signal) {
    const moved = bar.setting(), budget = Math.abs(bar.budgetOf(moved) - 1);
    for (const state of Object.values(figures).filter((one) => one.isSeen() && !one.isRehearsed)) {
      const { rows, seeds, resamples } = state.figure, setting = { ...settingOf(state.figure, moved), budget };
      await estimates.evaluate(answering.estimatesOf(rows), setting, { seeds, resamples, quick: true, signal, patient: true });
      state.isRehearsed = true;
    }
  }

  let shading = 0, key = "", searching = null;
  function shadeLater() {
    clearTimeout(shading);
    searching?.abort(); // a move comes first
    shading = setTimeout(async () => {
      const { threshold, ...rest } = bar.setting();
      const names = Object.values(figures).filter((one) => one.isSeen()).map(({ figure }) => figure.name);
      const asked = JSON.stringify([rest, names]);
      if (asked === key) return;
      searching = new AbortController();
      try {
        await rehearse(searching.signal);
        const past = await deadZone(searching.signal);
        key = asked;
        const none = past === Infinity || past <= 0;
        bar.shade(none ? 0 : past, none ? "" : `Up to ${past.toFixed(2)} the gate always opens: nothing changes.`);
      } catch {
        key = ""; // overtaken, or the figures say what is wrong
      }
    }, SHADE);
  }

  // pages and notebooks

  function attach(root) {
    const figure = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    if (!bar.opened()) {
      bar.open(figure.setting, { moves: figure.moves });
      bar.follow(follow);
      bar.follow(shadeLater);
      addEventListener("scroll", shadeLater, { passive: true });
      shadeLater();
    }
    open(root, figure, (picture, note) => root.querySelector(".live-static").replaceWith(picture, note));
    follow(); // what a link asks for is not there yet
  }

  // What sentences alone show has no place of its own, and no bar.
  function showNumbers(root, figure) {
    if (!bar.opened()) bar.open(figure.setting, { root: document.createElement("div"), moves: figure.moves, inline: true });
    bar.follow(follow);
    return open(root, figure, () => {});
  }

  function show(root, figure) {
    if (figure.kind === "numbers") return showNumbers(root, figure);
    const head = document.createElement("div");
    root.classList.add("live-figure");
    root.append(head);
    const closeBar = bar.open(figure.setting, { root: head, moves: figure.moves, inline: true });
    bar.follow(follow);
    const close = open(root, figure, (picture, note) => root.append(picture, note));
    return () => {
      close();
      closeBar?.();
    };
  }

  globalThis.EnvProbe.live = { show, figures, follow };
  if (engine?.available()) document.querySelectorAll(".live-figure").forEach(attach);
})();
