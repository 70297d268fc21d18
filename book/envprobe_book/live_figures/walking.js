// Walking: a gain goes along its axis from one protocol to another, a switch at a press, in the reader's order.
//
// A classic script, after live.js, for each `.live-walk` (see walking.py). The picture has a row a press: where
// the gain is, its interval, and hollow where it would be without the answers of both rules. `The other way round` walks the same
// switches backwards; the first walk stays behind it, faint. The order stands in a page's address: `walk=accuracy,end`.
// It makes `EnvProbe.walking`:
//
//   show(root, walk)   put a walk into an element of a notebook, with a bar above it
(() => {
  "use strict";

  const { engine, estimates, bar, live, answering, plot: makePlot, telling, dom: { SVG, element, change, say, OUTLINES } } = globalThis.EnvProbe;
  const ROW = 22, DENSE = 15, TOP = 6, AXIS = 36, NAME = 6.3; // pixels; of a letter
  const PACE = 450; // milliseconds from one press to the next of a walk that goes by itself
  const ROUND = "round"; // in the address, after the switches: the other way round
  const FEW = 420; // pixels of a narrow picture, which has no room for what each press adds

  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // `isPage`: whether the address is the walk's.
  function open(root, walk, isPage) {
    const known = new Map(walk.switches.map((one) => [one.name, one]));
    let path = [], first = null; // the switches pressed, and those of the walk that this one turns round
    let pace = 0, goal = null, shown = null, range = [...walk.range];

    // what is asked

    function protocolOf(pressed) {
      const own = { ...walk.held }, base = engine.names().protocols[walk.base];
      for (const name of pressed) own[name] = known.get(name).value;
      const changes = Object.entries(own).filter(([name, value]) => value !== base[name]).map(([name, value]) => `${name}=${value}`);
      return changes.length ? `${walk.base}:${changes.join(",")}` : walk.base;
    }

    const under = ({ arms, ...rest }, protocol) => ({ ...rest, arms: arms.map((arm) => ({ ...arm, protocol })) });
    const gainAt = (pressed) => under(walk.estimates.gain, protocolOf(pressed));
    const answersAt = (pressed) => under(walk.estimates.answers, protocolOf(pressed));

    function shareOf(order, at) {
      const [after, before] = [order.slice(0, at + 1), order.slice(0, at)].map(gainAt);
      return { ...after, statistic: "shift", arms: [...after.arms, ...before.arms] };
    }

    // Of a walk: at each place the gain and what answers are worth, and of each press what it changes.
    const rowsOf = (order) => [
      ...[...order, null].map((_, at) => ({ value: gainAt(order.slice(0, at)), x: answersAt(order.slice(0, at)) })),
      ...order.map((_, at) => ({ value: shareOf(order, at) })),
    ];
    const taken = (order, found) => ({
      places: found.slice(0, order.length + 1).map(({ value, x }) => ({ gain: value, answers: x })),
      shares: found.slice(order.length + 1, 2 * order.length + 1).map(({ value }) => value),
    });

    const end = { value: gainAt(walk.switches.map(({ name }) => name)) };

    function asked() {
      const setting = { ...walk.setting };
      for (const knob of Object.keys(setting)) if (bar.setting()[knob] !== undefined) setting[knob] = bar.setting()[knob];
      return { path: [...path], first: first && [...first], rows: [end, ...rowsOf(path), ...(first ? rowsOf(first) : [])], setting, seeds: walk.seeds, resamples: walk.resamples };
    }

    function remember() {
      const order = walk.switches.map(({ name }) => name), rows = rowsOf(order);
      const found = [...walk.found.flat(), ...walk.shares];
      estimates.remember(answering.estimatesOf(rows), walk.setting, walk, found);
    }

    // the picture

    const svg = element("div", { class: "lp lp-walk" }), picture = document.createElementNS(SVG, "svg");
    const steps = element("ol", { class: "lp-numbers", "aria-label": walk.about }), axis = element("p", { class: "lp-label" }, walk.about);
    change(picture, { class: "lp-picture", "aria-hidden": "true" });
    const walker = document.createElementNS(SVG, "path"), trail = document.createElementNS(SVG, "g");
    change(walker, { class: "live-walker", d: OUTLINES.o });
    picture.append(trail, walker);
    const ghost = key("lp-mark lp-ghost", "the first way");
    const printed = walk.printed === null ? [] : [key("lp-printed", "as the paper prints", OUTLINES.D)];
    const legend = element("p", { class: "lp-legend" }, key("lp-mark lp-ink", walk.titles[0]), key("lp-mark lp-hollow lp-ink", "without answers, of both rules"), ...printed, ghost);
    svg.append(picture, axis, legend, steps);

    function key(kind, text, outline) {
      const own = document.createElementNS(SVG, "svg");
      change(own, { viewBox: "-12 -7 24 14", "aria-hidden": "true" });
      own.append(mark(kind, 0, 0, 4, outline));
      return element("span", { class: "lp-key" }, own, text);
    }

    function drawn(tag, attributes, text) {
      const node = document.createElementNS(SVG, tag);
      change(node, attributes);
      if (text !== undefined) node.textContent = text;
      return node;
    }

    function mark(kind, x, y, size, outline = OUTLINES.o) {
      const style = walk.series[walk.arms[0]];
      return drawn("path", { class: kind, d: outline, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`, ...(kind.includes("lp-ink") ? { style: `--light: ${style.colour}; --dark: ${style.dark}` } : {}) });
    }

    const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

    function draw() {
      const width = picture.clientWidth, most = walk.switches.length;
      if (!shown || width < 60) return;
      const isNarrow = width < FEW, left = Math.min(0.44 * width, NAME * 26), right = isNarrow ? 40 : 88;
      const row = isNarrow ? DENSE : ROW, height = TOP + (most + 1) * row, style = walk.series[walk.arms[0]];
      const x = (value) => left + 8 + ((value - range[0]) / (range[1] - range[0])) * (width - right - left - 16);
      const y = (at) => TOP + (at + 0.5) * row, ink = { style: `--light: ${style.colour}; --dark: ${style.dark}` };
      change(picture, { viewBox: `0 0 ${width} ${height + AXIS}`, height: height + AXIS });
      const nodes = [], put = (...own) => nodes.push(drawn(...own));
      const size = range[1] - range[0] > 16 ? 5 : 2;
      for (let tick = Math.ceil(range[0] / size) * size; tick <= range[1]; tick += size) {
        put("line", { class: tick === 0 ? "lp-zero" : "lp-grid", x1: x(tick), x2: x(tick), y1: TOP, y2: height });
        put("text", { class: "lp-tick", x: x(tick), y: height + 15, "text-anchor": "middle" }, makePlot.number(tick, 0));
      }
      const goal = shown.end.value;
      if (isNumber(goal)) {
        put("line", { class: "lp-zero lp-dotted", x1: x(goal), x2: x(goal), y1: TOP, y2: height + 18 });
        put("text", { class: "lp-tick live-goal", x: x(goal), y: height + 31, "text-anchor": "middle" }, `${walk.ends[1]} ${telling.number(goal, 1, { signed: true, isRough: shown.isRough })}`);
      }
      const line = (places) => places.map(({ gain }, at) => `${at ? "L" : "M"}${x(gain.value).toFixed(1)} ${y(at)}`).join("");
      if (shown.first) {
        put("path", { class: "lp-line lp-ghost", d: line(shown.first.places) });
        shown.first.places.forEach(({ gain }, at) => nodes.push(mark("lp-mark lp-ghost", x(gain.value), y(at), 3.5)));
      }
      put("path", { class: "lp-line lp-way live-trail", d: line(shown.own.places) });
      shown.own.places.forEach(({ gain, answers }, at) => {
        const name = at ? known.get(shown.path[at - 1]).do : walk.ends[0], most = Math.floor((left - 4) / NAME);
        put("text", { class: "lp-name", x: left - 2, y: y(at) + 4, "text-anchor": "end" }, name.length > most ? `${name.slice(0, most - 1)}…` : name);
        const number = (value, signed) => telling.number(value, 1, { signed, isRough: shown.isRough });
        put("text", { class: "lp-value", x: width - 2, y: y(at) + 4, "text-anchor": "end" }, number(gain.value, false));
        if (at && !isNarrow) put("text", { class: "lp-value live-share", x: width - 44, y: y(at) + 4, "text-anchor": "end" }, number(shown.own.shares[at - 1].value, true));
        if (!isNumber(gain.value)) return;
        const kind = shown.isRough ? "lp-mark lp-hollow lp-ink" : "lp-mark lp-ink", without = gain.value - answers.value;
        if (isNumber(gain.low)) put("path", { class: "lp-interval lp-ink", fill: "none", d: `M${x(gain.low)} ${y(at)}H${x(gain.high)}M${x(gain.low)} ${y(at) - 3}v6M${x(gain.high)} ${y(at) - 3}v6`, ...ink });
        if (isNumber(without) && Math.abs(x(without) - x(gain.value)) > 1) nodes.push(mark("lp-mark lp-hollow lp-ink", x(without), y(at), 3.5));
        nodes.push(mark(kind, x(gain.value), y(at), 3.5));
      });
      if (isNumber(walk.printed)) nodes.push(mark("lp-printed", x(walk.printed), y(most), 5, OUTLINES.D));
      trail.replaceChildren(...nodes);
      const last = shown.own.places.length - 1, here = shown.own.places[last].gain.value;
      if (isNumber(here)) walker.style.transform = `translate(${x(here).toFixed(1)}px, ${y(last)}px) scale(8)`;
      svg.classList.toggle("live-rough-marks", shown.isRough);
    }

    // what is said

    const main = element("p", { class: "live-walk-said" }), means = element("p", { class: "live-walk-means" }), answered = element("p", { class: "live-walk-answers" }), twice = element("p", { class: "live-walk-twice" });
    const heard = element("p", { class: "live-heard", role: "status" }), note = element("p", { class: "live-note" });
    const slot = (say_) => ({ kind: "places", say: say_, digits: 1, unit: "point" });
    const words = (family, more) => Object.fromEntries(Object.entries(walk.say[family]).map(([place, text]) => [place, Object.entries(more).reduce((own, [name, value]) => own.replaceAll(name, value), text)]));
    const named = (text) => text.replace(/\|([^|]*)\|/g, (_, own) => (own.includes("{than}") ? "" : own));
    const given = (found) => ({ value: found.value ?? NaN, low: found.low ?? NaN, high: found.high ?? NaN });

    function worded(family, found, more = {}, extra = {}) {
      const own = Object.fromEntries(Object.entries(words(family, more)).map(([place, text]) => [place, named(text)]));
      return telling({ ...slot(own), ...extra }, found.map(given), shown.isRough);
    }

    function tellAll() {
      const { own, path: order, first: other } = shown, here = own.places.at(-1), last = order.at(-1);
      const start = `${capital(walk.ends[0])}, ${walk.titles[0]} ends ${worded("ahead", [here.gain], { "{than}": walk.titles[1] }, { within: 0.5 })}.`;
      const done = order.length === walk.switches.length ? ` This is the experiment ${walk.ends[1]}.` : "";
      const turned = last && worded("turns", [own.shares.at(-1), own.places.at(-2).gain, here.gain], { "{Doing}": capital(known.get(last).doing) });
      say(main, last ? turned + done : start);
      say(means, last ? known.get(last).means ?? "" : "Each switch is one difference between the two experiments. Press any.");
      say(answered, `Of the difference answers ${worded("adds", [here.answers], {}, { within: 0.5 })}.`);
      ghost.style.visibility = other ? "" : "hidden"; // its place stays
      say(twice, other ? differently(own, order, other) : "");
      for (const node of [main, means, answered, twice]) node.classList.toggle("live-rough", shown.isRough);
      if (!shown.isRough) say(heard, `${main.textContent} ${answered.textContent} ${twice.textContent}`);
      const lines = own.places.map(({ gain }, at) => `${at ? known.get(order[at - 1]).do : walk.ends[0]}: ${telling.number(gain.value, 1)} [${telling.number(gain.low, 1)}, ${telling.number(gain.high, 1)}]`);
      steps.replaceChildren(...lines.map((text) => element("li", {}, text)));
      steps.setAttribute("start", "0");
    }

    // The switch whose share the order moves most.
    function differently(own, order, other) {
      const pairs = order.map((name, at) => [name, own.shares[at], other.shares[shown.firstPath.indexOf(name)], at]);
      const known_ = pairs.filter(([, one, two]) => isNumber(one.value) && isNumber(two.value));
      if (!known_.length) return "";
      const [name, now, before, at] = known_.reduce((best, one) => (Math.abs(one[1].value - one[2].value) > Math.abs(best[1].value - best[2].value) ? one : best));
      const points = (found) => `${telling.number(found.value, 1, { signed: true, isRough: shown.isRough })} [${telling.number(found.low, 1)}, ${telling.number(found.high, 1)}]`;
      return `${capital(known.get(name).doing)} is worth ${points(before)} points as press ${shown.firstPath.indexOf(name) + 1}, and ${points(now)} as press ${at + 1}: what a switch is worth depends on when it is pressed.`;
    }

    // the buttons

    const buttons = new Map(walk.switches.map(({ name, do: text }) => {
      const place = element("span", { class: "live-press-place", "aria-hidden": "true" });
      const button = element("button", { type: "button", class: "live-press", "aria-pressed": "false", "data-switch": name, title: known.get(name).means ?? "" }, place, capital(text));
      button.addEventListener("click", () => press(name));
      return [name, { button, place }];
    }));
    const control = (text, act) => {
      const button = element("button", { type: "button", class: "live-walk-control" }, text);
      button.addEventListener("click", () => button.getAttribute("aria-disabled") === "true" || act()); // focus stays on it
      return button;
    };
    const rest = control("Press the rest", () => go([...path, ...walk.switches.map(({ name }) => name).filter((name) => !path.includes(name))], path.length, first));
    const round = control("The other way round", () => {
      const whole = goal ?? path; // a walk that still goes counts as gone
      go([...whole].reverse(), 0, [...whole]);
    });
    const back = control("Start again", () => go([], 0, null));

    function press(name) {
      clearTimeout(pace);
      first = goal = null;
      path = path.includes(name) ? path.filter((one) => one !== name) : [...path, name];
      follow();
    }

    // Press what an order has from a place on, one after the other.
    function go(order, from, other) {
      clearTimeout(pace);
      first = other;
      goal = order;
      const next = (at) => {
        path = order.slice(0, at);
        follow();
        if (at < order.length) pace = setTimeout(() => next(at + 1), PACE);
        else goal = null;
      };
      next(isStill() ? order.length : Math.min(order.length, from + (other && from === 0 ? 0 : 1)));
    }

    function follow() {
      for (const [name, { button, place }] of buttons) {
        change(button, { "aria-pressed": String(path.includes(name)) });
        say(place, path.includes(name) ? path.indexOf(name) + 1 : "");
      }
      const off = new Map([[rest, path.length === walk.switches.length], [round, (goal ?? path).length < 2], [back, !path.length]]);
      for (const [button, isOff] of off) change(button, { "aria-disabled": String(isOff) });
      for (const node of [main, means, answered, twice]) node.classList.add("live-old");
      svg.classList.add("live-behind");
      if (isPage) writeAddress();
      answers.answer();
    }

    // the address

    let writing = 0;
    function writeAddress() {
      clearTimeout(writing);
      writing = setTimeout(() => {
        const url = new URL(location.href), said = [...path, ...(first ? [ROUND] : [])].join(",");
        if (path.length) url.searchParams.set("walk", said);
        else url.searchParams.delete("walk");
        url.search = url.search.replaceAll("%2C", ",").replaceAll("%3A", ":");
        try { history.replaceState(history.state, "", url.href); } catch { /* a page in a frame */ }
      }, 250);
    }

    function read() {
      const said = (new URL(location.href).searchParams.get("walk") ?? "").split(",").filter(Boolean);
      const wrong = said.filter((one) => !known.has(one) && one !== ROUND);
      path = [...new Set(said.filter((one) => known.has(one)))];
      first = said.includes(ROUND) && path.length > 1 ? [...path].reverse() : null;
      if (wrong.length) say(note, `The link names what is no switch here: ${wrong.join(", ")}.`);
    }

    const idle = element("p", { class: "live-walk-idle" }, `${capital(numbered(walk.idle.length))} more change nothing here, whenever they are pressed: ${walk.idle.join("; ")}. The default seeds, a switch too, stay as they are, so that every step runs the same episodes.`);
    function numbered(n) {
      return ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"][n] ?? String(n);
    }

    const titled = (title, isIn) => {
      const own = walk.switches.filter(({ together }) => together === isIn).map(({ name }) => buttons.get(name).button);
      return own.length ? [element("p", { class: "live-presses-head" }, title), ...own] : [];
    };
    const group = element("div", { class: "live-presses", role: "group", "aria-label": `Switches from ${walk.ends[0]} to ${walk.ends[1]}` }, ...titled("How accuracy is scored", true), ...titled("What happens in the episode", false));
    const controls = element("div", { class: "live-walk-controls" }, rest, round, back);
    const board = element("div", { class: "live-walk-board" },
      element("div", { class: "live-walk-words" }, main, means, answered), svg,
      element("div", { class: "live-walk-hand" }, group, controls, ...(walk.idle.length ? [idle] : [])), twice);
    root.append(board, note, heard);
    root.classList.add("live-walk-on");

    remember();
    if (isPage) read();
    const answers = answering(root, {
      asked,
      draw: ({ path: order, first: other }, found, used) => {
        const from = found.slice(1), length = 2 * order.length + 1;
        const isRough = !answering.isWhole(used, walk.resamples);
        shown = { path: order, firstPath: other, own: taken(order, from), first: other && taken(other, from.slice(length)), end: found[0].value, isRough };
        const own = [...shown.own.places, ...(shown.first?.places ?? []), { gain: shown.end }].flatMap(({ gain }) => [gain.low, gain.high, gain.value]).filter(isNumber);
        range = [Math.min(range[0], ...own), Math.max(range[1], ...own)];
        for (const node of [main, means, answered, twice]) node.classList.remove("live-old");
        svg.classList.remove("live-behind");
        say(note, answering.said(used, walk.resamples));
        tellAll();
        draw();
      },
      refuse: (sentence) => say(note, `${sentence} The picture shows the walk before.`),
    });
    const stop = bar.follow(() => {
      for (const node of [main, means, answered, twice]) node.classList.add("live-old");
      svg.classList.add("live-behind");
    });
    const watching = new ResizeObserver(draw);
    watching.observe(picture);
    follow();
    return () => {
      clearTimeout(pace);
      answers.close();
      watching.disconnect();
      stop();
    };
  }

  function show(root, walk) {
    const head = element("div"), own = element("div", { class: "live-walk" });
    root.append(head, own);
    const closeBar = bar.open(walk.setting, { root: head, moves: Object.keys(walk.setting), inline: true });
    const closers = [live.show(element("div"), walk.numbers), open(own, walk, false), closeBar];
    return () => closers.forEach((close) => close?.());
  }

  function attach(root) {
    open(root, JSON.parse(root.querySelector("script[type='application/json']").textContent), true);
  }

  globalThis.EnvProbe.walking = { show };
  if (engine?.available() && live) document.querySelectorAll(".live-walk").forEach(attach);
})();
