// The explorer: a page of live figures whose description is made from controls, and run in the page.
//
// A classic script, after live.js. It makes `EnvProbe.explorer`:
//
//   show(root, given)   put the explorer into an element of a notebook
//   state               what is shown: `setting`, and of each figure {setting, rows, found, resamples}
//
// In a book's page `.live-explorer` holds what is given as JSON (explorer.py beside this file): how policies
// and protocols are told, the levels that the paper prints, and the setting at first. The whole setting is the
// bar's, so that the address holds it; each knob is a text or a number:
//
//   world       a world, or pool      protocol   as on the command line: "paper:clock=stands"
//   policies    names                 reference  of differences
//   regime, horizon, mutation_rate    profile    and what differs from it in `habits`: "omit:0.3,spread:10"
//   seeds       "first:past"          budget, threshold
(() => {
  "use strict";

  const { engine, estimates, bar, answering, plotted, plot: makePlot, planeLegend, dom: { element, say, nameOf, KEEPS_KEYS } } = globalThis.EnvProbe;
  const RESAMPLES = 10_000;
  const FEWEST = 10, MOST = 5_000, LAST = 10_000_000; // seeds of a policy, and the last one
  const POOL = "pool";
  const HABIT_STEP = 0.01;
  const state = { setting: null, figures: {} };

  const listed = (text) => text.split(",").filter(Boolean);
  const worldsOf = (world) => (world === POOL ? Object.keys(engine.names().worlds) : [world]);

  // protocols, habits and seeds as texts

  // {name, switches} of a protocol's text; undefined where it means none.
  function protocolOf(text) {
    try {
      const [told, ...turned] = text.split(":"), name = nameOf(told, engine.names().titles.protocol);
      return { name, switches: engine.protocol([name, ...turned].join(":")) };
    } catch {
      return undefined;
    }
  }

  // The shortest text: of the switches those that differ from the named protocol.
  function protocolText({ name, switches }) {
    const named = engine.names().protocols[name];
    const turned = Object.keys(switches).filter((key) => switches[key] !== named[key]).map((key) => `${key}=${switches[key]}`);
    return turned.length ? `${name}:${turned.join(",")}` : name;
  }

  // {habit: value} of a text; undefined where it means none. A habit is a number in its range or one of a few values.
  function habitsOf(text) {
    const { ranges, whole, profiles, knobs } = engine.names(), found = {};
    for (const item of listed(text)) {
      const [habit, told] = item.split(":");
      if (!Object.hasOwn(profiles.perfect, habit)) return undefined;
      const value = Object.hasOwn(ranges, habit)
        ? bar.numberIn(told, 0, ranges[habit], whole.includes(habit))
        : knobs[habit].find((one) => String(one) === told);
      if (value === undefined) return undefined;
      found[habit] = value;
    }
    return found;
  }

  function habitsText(habits, profile) {
    const named = engine.names().profiles[profile];
    return Object.keys(named).filter((habit) => habits[habit] !== undefined && habits[habit] !== named[habit])
      .map((habit) => `${habit}:${habits[habit]}`).join(",");
  }

  const reserved = () => engine.names().constant.reference; // the seeds on which zeros are learned: first and past

  function seedsOf(text) {
    const [, first, past] = (/^(\d{1,8}):(\d{1,8})$/.exec(text) ?? []).map(Number);
    const count = past - first, [from, behind] = reserved();
    const isFree = past <= from || first >= behind;
    return count >= FEWEST && count <= MOST && past <= LAST && isFree ? { first, count } : undefined;
  }

  const accepted = (read) => (text) => (read(text) === undefined ? undefined : text);
  const named = (kind) => (text) => nameOf(text, engine.names().titles[kind]);

  const readers = {
    world: (text) => (text === POOL ? text : named("world")(text)),
    protocol: (text) => protocolOf(text) && protocolText(protocolOf(text)),
    policies: (text) => {
      const names = listed(text).map(named("policy"));
      return names.length && names.every(Boolean) ? names.join(",") : undefined;
    },
    reference: named("policy"),
    mutation_rate: (text) => bar.numberIn(text, 0, 1, false),
    habits: accepted(habitsOf),
    seeds: accepted(seedsOf),
  };

  // The setting as `estimates` takes it.
  function settingOf(moved) {
    const { budget, threshold, regime, horizon, protocol, mutation_rate, profile, habits } = moved;
    const own = habits ? { name: profile, ...habitsOf(habits) } : profile;
    return { budget, threshold, regime, horizon, protocol, mutation_rate, profile: own };
  }

  // what the figures show

  const SHARES = { accuracy: "Accuracy", success: "Task success" };

  function estimate(statistic, measure, names, worlds, own = {}) {
    const scale = statistic === "gain" ? 100 : 1;
    const ordered = statistic === "mean" ? [...worlds].sort() : worlds; // as `estimates.mean` resamples them
    return { statistic, measure, arms: names.map((policy) => ({ policy, ...own })), worlds: ordered, scale };
  }

  // Of each figure how it looks, and `rows` that it shows of a setting.
  function figuresOf(given) {
    const title = (name) => given.series[name].title;
    const each = (moved, make) => listed(moved.policies).flatMap((name) => make(name, worldsOf(moved.world)));
    const row = (name, panel, value, more = {}) => ({ panel, name: title(name), series: name, value, competing: true, ...more });
    const printed = (moved, name, measure) => given.printed[moved.world]?.[name]?.[measure] ?? null;
    const others = (moved) => ({ ...moved, policies: listed(moved.policies).filter((name) => name !== moved.reference).join(",") });
    return [
      {
        name: "levels", kind: "forest", columns: 2, digits: 3,
        title: () => "How accurate beliefs end, and how often the task succeeds",
        rows: (moved) => Object.entries(SHARES).flatMap(([measure, panel]) => each(moved, (name, worlds) =>
          [row(name, panel, estimate("mean", measure, [name], worlds), { printed_value: printed(moved, name, measure) })])),
      },
      {
        name: "differences", kind: "forest", columns: 2, digits: 1, line: 0, label: "points",
        title: (moved) => `What each policy gains over ${title(moved.reference)} on the same episodes`,
        rows: (moved) => Object.entries(SHARES).flatMap(([measure, panel]) => each(others(moved), (name, worlds) =>
          [row(name, panel, estimate("gain", measure, [name, moved.reference], worlds))])),
      },
      {
        name: "above-zero", kind: "forest", digits: 3, line: 0, label: "accuracy above the best table that never changes",
        title: () => "Who is right more often than a table that was written before the episode",
        rows: (moved) => each(moved, (name, worlds) => [row(name, "", estimate("mean", "accuracy-zero", [name], worlds))]),
      },
      {
        name: "frontier", kind: "frontier", digits: 3, label: "accuracy", across: "task success",
        title: () => "Which policies buy accuracy with success, and which have both",
        rows: (moved) => each(moved, (name, worlds) => [row(name, "", estimate("mean", "accuracy", [name], worlds), {
          x: estimate("mean", "success", [name], worlds),
          printed_value: printed(moved, name, "accuracy"), printed_x: printed(moved, name, "success"),
        })]),
      },
      {
        name: "over-time", kind: "curves", digits: 2, label: "accuracy", across: "step",
        title: () => "When accuracy is lost, and when probes win it back",
        rows: (moved) => each(moved, (name, worlds) => [row(name, "", estimate("track", "accuracy", [name], worlds))]),
      },
      {
        name: "probes", kind: "curves", digits: 2, label: "share of episodes that probe", across: "step",
        title: () => "When each policy spends its budget",
        rows: (moved) => each(moved, (name, worlds) => [row(name, "", estimate("track", "probe", [name], worlds))]),
      },
      {
        name: "useful", kind: "forest", digits: 2, label: "useful share of an episode’s probes",
        title: () => "How many probes are answered by anything new",
        rows: (moved) => each(moved, (name, worlds) => [row(name, "", estimate("mean", "useful/probes", [name], worlds))]),
      },
    ].map((figure) => ({ label: "", across: "", line: null, limits: null, columns: 1, ...figure, series: given.series }));
  }

  // One figure of the explorer. Another choice of policies is another picture; a move updates the one there is.
  function openFigure(root, figure, told) {
    const picture = element("div"), note = element("p", { class: "live-note", role: "status" });
    const place = element("section", { class: "explorer-figure", id: `explorer-${figure.name}`, "data-figure": figure.name }, picture, note);
    root.append(place);
    let plot = null, drawn = "";

    function draw({ rows, setting, title }, found, used) {
      state.figures[figure.name] = { setting, rows, found, ...used };
      const labels = JSON.stringify([title, rows.map(({ panel, name }) => [panel, name])]);
      if (labels !== drawn) {
        plot?.close();
        plot = makePlot?.({ ...figure, title, about: title }) ?? null;
        picture.replaceChildren(...(plot ? [plot.root] : []));
        drawn = labels;
      }
      plot?.update(plotted(rows, found), null);
      say(note, answering.said(used, RESAMPLES));
    }

    const asked = () => {
      const moved = bar.setting(), rows = figure.rows(moved);
      return rows.length ? { ...told(rows), title: figure.title(moved) } : null;
    };
    const refuse = () => say(note, "This figure shows the values before.");
    const { close } = answering(place, { asked, draw, refuse });
    return () => {
      close();
      plot?.close();
      delete state.figures[figure.name];
    };
  }

  // the table of the numbers

  const COLUMNS = [
    ["accuracy", "Accuracy", 3],
    ["zero", "Its zero", 3],
    ["success", "Success", 3],
    ["useful/probes", "Useful", 3],
    ["repeated_probes/probes", "Repeated", 3],
    ["probes", "Probes an episode", 2],
  ];

  function cell(value, digits) {
    if (Number.isNaN(value.value)) return element("td", {}, "–", element("small", {}, " no probe"));
    const ends = Number.isNaN(value.low) ? "" : ` [${value.low.toFixed(digits)}, ${value.high.toFixed(digits)}]`;
    return element("td", {}, value.value.toFixed(digits), element("small", {}, ends));
  }

  function openTable(root, given, told) {
    const caption = element("caption"), body = element("tbody");
    const head = ["Policy", ...COLUMNS.map(([, name]) => name)].map((name) => element("th", { scope: "col" }, name));
    const table = element("table", { class: "explorer-table" }, caption, element("thead", {}, element("tr", {}, ...head)), body);
    const place = element("div", { class: "explorer-numbers", role: "region", tabindex: "0", "aria-label": "The numbers" }, table);
    root.append(place);

    function asked() {
      const moved = bar.setting();
      return told(listed(moved.policies).flatMap((name) =>
        COLUMNS.map(([measure]) => ({ series: name, value: estimate("mean", measure, [name], worldsOf(moved.world)) }))));
    }

    function draw({ rows, setting, seeds }, found, used) {
      state.figures.table = { setting, rows, found, ...used };
      const lines = [];
      for (let at = 0; at < rows.length; at += COLUMNS.length) {
        const cells = COLUMNS.map(([, , digits], i) => cell(found[at + i].value, digits));
        lines.push(element("tr", {}, element("th", { scope: "row" }, given.series[rows[at].series].title), ...cells));
      }
      body.replaceChildren(...lines);
      const few = answering.said(used, RESAMPLES);
      say(caption, `Means with 95% intervals, seeds ${seeds}. ${few || `${RESAMPLES.toLocaleString("en-US")} resamples.`}`);
    }

    return answering(place, { asked, draw, refuse: () => say(caption, "The numbers are those before.") }).close;
  }

  // the plane of budget and threshold

  const PLANE_RESAMPLES = 200; // of each cell, which says no more than whether its interval holds 0
  const AT_ONCE = 24; // cells between two looks at the reader
  const THRESHOLD_STEP = 0.25, HIGHEST = 4;
  const REST = 400; // milliseconds after which a hand rests

  function spread(most, step, count) {
    const steps = Math.round(most / step), places = Math.min(count, steps);
    return Array.from({ length: places + 1 }, (_, i) => Math.round((i * steps) / places) * step);
  }

  const between = (value, most) => Math.max(0, Math.min(most, value));

  // The most places, of so many, that divide an axis evenly; where hardly any do, cells differ in size.
  function even(steps, most) {
    const fitting = Array.from({ length: Math.min(most, steps) }, (_, i) => i + 1).filter((places) => steps % places === 0);
    return fitting.at(-1) > 2 ? fitting.at(-1) : most;
  }

  function cellsOf(horizon, isCoarse) {
    const budgets = spread(horizon, 1, isCoarse ? even(horizon, 6) : 40);
    const thresholds = spread(HIGHEST, THRESHOLD_STEP, isCoarse ? even(HIGHEST / THRESHOLD_STEP, 8) : Infinity);
    return budgets.flatMap((x) => thresholds.map((y) => ({ x, y })));
  }

  function openPlane(root, given, told) {
    const chosen = element("select", { "data-knob": "plane" });
    const start = element("button", { type: "button" }, "Run every cell (some seconds)"), cancel = element("button", { type: "button", hidden: "" }, "Cancel");
    const progress = element("progress", { max: "1", value: "0", hidden: "", "aria-label": "Share of the plane that has run" });
    const note = element("p", { class: "live-note", role: "status" }), picture = element("div"), key = planeLegend(makePlot.FULL, "the policy better");
    say(key.behind, "the other better");
    const label = element("label", { class: "live-choice" }, element("span", {}, "Policy"), chosen);
    const head = element("div", { class: "explorer-plane-head" }, label, start, cancel, progress);
    const place = element("section", { class: "explorer-figure explorer-plane", "data-figure": "plane", "data-settled": "no" }, picture, key.root, note, head);
    root.append(place);
    let plot = null, overtaken = null, of = "", waiting = 0;

    const mark = ({ threshold, ...moved } = bar.setting()) => ({ x: bar.budgetOf(moved), y: threshold });
    const papers = () => ({ x: bar.budgetOf({ ...bar.setting(), budget: null }), y: given.start.threshold });
    const without = ({ budget, threshold, policies: _, ...rest }) => JSON.stringify([rest, chosen.value]);

    function draw(cells, policy) {
      state.figures.plane = { cells };
      plot ??= picturePlane(policy);
      plot?.update(cells, null, { at: mark() });
    }

    function picturePlane(policy) {
      const title = `Where budget and threshold pay: accuracy of ${given.series[policy].title} over ${given.series[bar.setting().reference].title}`;
      const figure = {
        name: "plane", kind: "plane", title, label: "points", up: "threshold", across: "budget", line: 0, limits: null, columns: 1, digits: 1,
        about: title, series: given.series, mark: papers(), onmove: ({ x, y }) => bar.move({ budget: between(Math.round(x), bar.horizonOf(bar.setting())), threshold: between(Math.round(20 * y) / 20, HIGHEST) }),
      };
      const made = makePlot?.(figure) ?? null;
      if (made) picture.replaceChildren(made.root);
      return made;
    }

    async function fill(policy, cells, signal, done, all) {
      const found = [], moved = bar.setting();
      for (let at = 0; at < cells.length; at += AT_ONCE) {
        const some = cells.slice(at, at + AT_ONCE);
        const rows = some.map(({ x, y }) => estimate("gain", "accuracy", [policy, moved.reference], worldsOf(moved.world), { budget: x, threshold: y }));
        const { setting, seeds } = told([]);
        const answered = await estimates.evaluate(rows, setting, { seeds, resamples: PLANE_RESAMPLES, signal });
        some.forEach((place, i) => found.push({ ...place, ...answered.found[i] }));
        progress.value = (done + found.length) / all;
      }
      return found;
    }

    // Run the cells of each stage, a coarse one or all; what is asked later overtakes it.
    async function run(...coarse) {
      const policy = chosen.value, horizon = bar.horizonOf(bar.setting());
      clearTimeout(waiting); // what a hand at rest would start is overtaken, too
      overtaken?.abort();
      overtaken = new AbortController();
      const { signal } = overtaken;
      of = without(bar.setting());
      start.disabled = true;
      cancel.hidden = progress.hidden = false;
      say(note, "Running.");
      const stages = coarse.map((isCoarse) => cellsOf(horizon, isCoarse)), all = stages.flat().length;
      try {
        let done = 0;
        for (const cells of stages) {
          const found = await fill(policy, cells, signal, done, all);
          if (done === 0) {
            plot?.close(); // another policy or reference is another picture
            plot = null;
          }
          draw(found, policy);
          picture.classList.remove("explorer-behind");
          done += cells.length;
        }
        place.dataset.settled = "yes";
        say(note, `${stages.at(-1).length.toLocaleString("en-US")} pairs of budget and threshold, in points of accuracy. Press a place to go there.`);
      } catch (error) {
        if (overtaken.signal === signal) say(note, error.name === "AbortError" ? "Cancelled." : String(error.message || error));
      }
      if (overtaken.signal !== signal) return;
      cancel.hidden = progress.hidden = true;
      start.disabled = false;
    }

    // A few cells follow the setting by themselves, once the hand rests.
    function follow() {
      const moved = bar.setting(), known = listed(moved.policies).filter((name) => name !== moved.reference);
      const value = [chosen.value, "simple"].find((name) => known.includes(name)) ?? known.at(-1);
      chosen.replaceChildren(...known.map((name) => element("option", { value: name }, given.series[name].title)));
      if (value) chosen.value = value;
      start.disabled = !value || !cancel.hidden;
      if (of === without(moved)) {
        if (state.figures.plane) plot?.update(state.figures.plane.cells, null, { at: mark() });
        return;
      }
      overtaken?.abort();
      clearTimeout(waiting);
      picture.classList.add("explorer-behind");
      place.dataset.settled = value ? "no" : "yes";
      if (value) waiting = setTimeout(() => run(true), of ? REST : 0);
    }

    start.addEventListener("click", () => run(true, false));
    cancel.addEventListener("click", () => overtaken.abort());
    chosen.addEventListener("change", follow);
    const stop = bar.follow(follow);
    follow();
    return () => {
      overtaken?.abort();
      clearTimeout(waiting);
      stop();
      plot?.close();
      delete state.figures.plane;
    };
  }

  // controls: each moves the bar, and follows it

  // A group of radio buttons or check boxes: {value: title}.
  function choices(name, type, titles, onchange) {
    const group = `explorer-${name}`;
    const boxes = Object.entries(titles).map(([value, title]) => {
      const input = element("input", { type, name: group, value, ...KEEPS_KEYS });
      input.addEventListener("change", () => onchange(boxes.filter(({ input: one }) => one.checked).map(({ input: one }) => one.value), input));
      return { input, label: element("label", {}, input, title) };
    });
    const set = (values) => boxes.forEach(({ input }) => {
      input.checked = values.includes(input.value);
    });
    return { boxes, set, labels: boxes.map(({ label }) => label) };
  }

  const group = (title, ...children) => element("fieldset", { class: "explorer-group" }, element("legend", {}, title), ...children);

  function select(title, values, onchange) {
    const options = Object.entries(values).map(([value, text]) => element("option", { value }, text));
    const input = element("select", KEEPS_KEYS, ...options);
    input.addEventListener("change", () => onchange(input.value));
    return { input, root: element("label", { class: "live-choice" }, element("span", {}, title), input) };
  }

  function field(title, attributes, onchange) {
    const input = element("input", { type: "number", ...attributes, ...KEEPS_KEYS });
    input.addEventListener("change", () => onchange(input.value.trim()));
    return { input, root: element("label", { class: "live-choice" }, element("span", {}, title), input) };
  }

  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const same = (values) => Object.fromEntries(values.map((value) => [value, String(value)]));

  function openControls(root, given, refuse) {
    const known = engine.names(), follows = [];
    const titles = Object.fromEntries(Object.entries(given.series).map(([name, { title }]) => [name, title]));

    // Take what a reader typed, or say why not; what is shown is then what holds.
    function enter(knob, text, whatItAccepts) {
      const value = knob === "horizon" ? bar.numberIn(text, 1, known.budgets.length - 1, true) : readers[knob](text);
      if (text !== "" && value === undefined) {
        refuse(`${whatItAccepts}; ${text === "" ? "nothing" : text} is not accepted, and the figures keep what they show.`);
        follow();
      } else bar.move({ [knob]: text === "" ? null : value, ...(knob === "horizon" ? { budget: null } : {}) });
    }

    function worldAndProtocol() {
      const world = choices("world", "radio", { ...known.worlds, [POOL]: "All three pooled" }, ([value]) => bar.move({ world: value }));
      const protocol = choices("protocol", "radio", given.protocols, ([name]) => bar.move({ protocol: name }));
      follows.push((moved) => {
        world.set([moved.world]);
        protocol.set([protocolOf(moved.protocol).name]);
      });
      return [group("World", ...world.labels), group("Protocol", ...protocol.labels), switches()];
    }

    // The switches in words: ticked is the code's way, and what differs from the named protocol is marked.
    function switches() {
      const said = element("summary"), deeds = Object.entries(given.switches);
      const turn = (key, value) => {
        const own = protocolOf(bar.setting().protocol);
        bar.move({ protocol: protocolText({ name: own.name, switches: { ...own.switches, [key]: value } }) });
      };
      const boxes = deeds.map(([key, [, [code, words]]]) => {
        const input = element("input", { type: "checkbox", "data-switch": key, ...KEEPS_KEYS });
        input.addEventListener("change", () => turn(key, input.checked ? code : given.switches[key][0][0]));
        return { key, input, label: element("label", {}, input, capital(words)) };
      });
      const faults = Object.entries(given.faults).map(([key, [title, unit]]) => (
        { key, ...select(title, Object.fromEntries(known.knobs[key].map((value) => [value, `${value}${unit}`])), (value) => turn(key, value)) }
      ));
      const wordsOf = (key, value) => (given.switches[key]?.find(([one]) => one === value) ?? ["", `${given.faults[key][0]}: ${value}${given.faults[key][1]}`])[1];
      follows.push((moved) => {
        const { name, switches: own } = protocolOf(moved.protocol);
        const turned = (key) => own[key] !== known.protocols[name][key];
        for (const { key, input, label } of boxes) {
          input.checked = own[key] === given.switches[key][1][0];
          label.classList.toggle("explorer-turned", turned(key));
        }
        for (const { key, input, root: node } of faults) {
          input.value = own[key];
          node.classList.toggle("explorer-turned", turned(key));
        }
        const all = [...boxes, ...faults].filter(({ key }) => turned(key)).map(({ key }) => wordsOf(key, own[key]));
        say(said, all.length ? `Switches, turned: ${all.join("; ")}` : "Switches between text and code");
      });
      return element("details", { class: "explorer-fold" }, said, group("As the code does", ...boxes.map(({ label }) => label)),
        group("Faults that neither has", ...faults.map(({ root: node }) => node)));
    }

    function comparison() {
      const shown = choices("policies", "checkbox", titles, (values, input) => {
        if (values.length) bar.move({ policies: values.join(",") });
        else {
          input.checked = true;
          refuse("At least one policy is shown.");
        }
      });
      const reference = select("Differences from", titles, (value) => bar.move({ reference: value }));
      const said = element("summary");
      follows.push((moved) => {
        shown.set(listed(moved.policies));
        reference.input.value = moved.reference;
        say(said, `Policies: ${listed(moved.policies).length}, compared with ${titles[moved.reference]}`);
      });
      const folded = [group("Policies", ...shown.labels), reference.root];
      return element("details", { class: "explorer-fold" }, said, ...folded);
    }

    function more() {
      const regimes = Object.fromEntries(Object.entries(known.regimes).map(([name, { title }]) => [name, `${name}: ${title}`]));
      const regime = select("Regime", regimes, (value) => bar.move({ regime: value, horizon: null, budget: null }));
      const longest = known.budgets.length - 1;
      const horizon = field("Horizon", { min: 1, max: longest }, (text) => enter("horizon", text, `A horizon is a whole number of 1 to ${longest} steps`));
      const rate = field("Mutation rate (empty: the regime’s)", { min: 0, max: 1, step: 0.005 }, (text) => enter("mutation_rate", text, "A mutation rate is a number from 0 to 1"));
      const seeds = () => {
        const past = Number(first.input.value) + Number(count.input.value), [from, behind] = reserved();
        enter("seeds", `${first.input.value}:${past}`, `Seeds are ${FEWEST} to ${MOST.toLocaleString("en-US")}, from 0 on, but for ${from} to ${behind - 1}, on which the zero is learned`);
      };
      const first = field("First seed", { min: 0 }, seeds), count = field("Number of seeds", { min: FEWEST, max: MOST }, seeds);
      const profile = select("Profile", same(Object.keys(known.profiles)), (value) => bar.move({ profile: value, habits: "" }));
      follows.push((moved) => {
        const own = seedsOf(moved.seeds);
        regime.input.value = moved.regime;
        horizon.input.value = bar.horizonOf(moved);
        rate.input.value = moved.mutation_rate ?? "";
        first.input.value = own.first;
        count.input.value = own.count;
        profile.input.value = moved.profile;
      });
      const fields = [regime, horizon, rate, first, count, profile].map(({ root: one }) => one);
      return element("details", { class: "explorer-fold" }, element("summary", {}, "More"),
        element("div", { class: "explorer-fields" }, ...fields), group("Habits of the simulated agent", ...Object.keys(known.profiles.perfect).map(habit)));
    }

    function setHabit(name, value) {
      const { profile, habits } = bar.setting();
      bar.move({ habits: habitsText({ ...habitsOf(habits), [name]: value }, profile) });
    }

    function habit(name) {
      const most = known.ranges[name], of = (moved) => habitsOf(moved.habits)[name] ?? known.profiles[moved.profile][name];
      const marked = (node, moved) => node.classList.toggle("explorer-turned", of(moved) !== known.profiles[moved.profile][name]);
      if (most === undefined) {
        const one = select(name.replaceAll("_", " "), same(known.knobs[name]), (text) => setHabit(name, known.knobs[name].find((value) => String(value) === text)));
        follows.push((moved) => {
          one.input.value = String(of(moved));
          marked(one.root, moved);
        });
        return one.root;
      }
      const input = element("input", { type: "range", min: 0, max: most, step: known.whole.includes(name) ? 1 : HABIT_STEP, "data-habit": name, ...KEEPS_KEYS });
      const output = element("output");
      const label = element("label", { class: "live-knob" }, element("span", {}, name.replaceAll("_", " ")), input, output);
      input.addEventListener("input", () => setHabit(name, Number(input.value)));
      follows.push((moved) => {
        input.value = of(moved);
        say(output, String(of(moved)));
        marked(label, moved);
      });
      return label;
    }

    function follow() {
      const moved = bar.setting();
      follows.forEach((update) => update(moved));
    }

    root.append(...worldAndProtocol(), comparison(), more());
    const stop = bar.follow(follow);
    follow();
    return stop;
  }

  // the whole

  function copyButton(said) {
    const button = element("button", { type: "button" }, "Copy link");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(bar.address());
        said("The link is copied; it restores this setting on any copy of this page.");
      } catch {
        said(bar.address()); // a page in a folder or a frame may have no clipboard
      }
    });
    return button;
  }

  // A link to the explorer sets it, without the page being loaded anew.
  function followLinks(event) {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const url = new URL(link.href, location.href);
    const isHere = url.pathname === location.pathname || /(^|\/)explorer\.(html|ipynb)$/.test(url.pathname);
    if (!url.search || !isHere) return;
    event.preventDefault();
    bar.go(url.href);
    document.querySelector(".live-explorer")?.scrollIntoView({ block: "start" });
  }

  function open(root, given) {
    const message = element("p", { class: "explorer-message", role: "alert" });
    const controls = element("div", { class: "explorer-controls", role: "group", "aria-label": "The setting" });
    const refuse = (sentence) => say(message, sentence);
    const about = element("p", {}, given.about);
    const link = element("p", { class: "explorer-link" }, copyButton(refuse));
    const figures = element("div", { class: "explorer-figures" });
    const told = (rows) => {
      const moved = bar.setting();
      return { rows, setting: settingOf(moved), seeds: moved.seeds, resamples: RESAMPLES };
    };

    // What no figure could run is said once, above them.
    async function check() {
      const moved = state.setting = bar.setting();
      const setting = settingOf(moved), [world] = worldsOf(moved.world);
      try {
        await Promise.all(listed(moved.policies).map((policy) => engine.setting(estimates.conditionOf({ policy }, world, setting))));
        if (state.setting === moved) refuse("");
      } catch (error) {
        if (state.setting === moved) refuse(`${error.message || error} The figures keep what they show.`);
      }
    }

    const first = element("div");
    root.append(first, controls, message, figures, about, link);
    const closing = [openControls(controls, given, refuse), openPlane(first, given, told), ...figuresOf(given).map((figure) => openFigure(figures, figure, told))];
    closing.push(openTable(root, given, told), bar.follow(check));
    state.setting = bar.setting();
    document.addEventListener("click", followLinks, true);
    const wrong = bar.refused();
    if (wrong.length) refuse(`What the address says of ${wrong.join(" and ")} is not possible here; the values at first hold.`);
    else check();
    root.dataset.ready = "yes";
    return () => {
      document.removeEventListener("click", followLinks, true);
      closing.forEach((close) => close());
    };
  }

  const shared = (given) => ({ moves: [], readers, ...given });

  function attach(root) {
    const given = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    bar.open(given.start, shared({}));
    root.querySelector(".live-static").remove();
    open(root, given);
    const place = /^#explorer-[\w-]+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
    place?.scrollIntoView({ block: "center" }); // a link to one of the figures, which were not there when it was opened
  }

  function show(root, given) {
    root.classList.add("live-explorer");
    const head = element("div");
    root.append(head);
    const closeBar = bar.open(given.start, shared({ root: head, inline: true }));
    const close = open(root, given);
    return () => {
      close();
      closeBar?.();
    };
  }

  globalThis.EnvProbe.explorer = { show, state };
  if (engine?.available()) document.querySelectorAll(".live-explorer").forEach(attach);
})();
