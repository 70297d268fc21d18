// The episode player: two policies on one seed, stepping together through recorded episodes.
import { KEEPS_KEYS, change, element, freshId, say, shape } from "./dom.js";
import { lastTime, openPair } from "./player-data.js";
import { makeForm } from "./player-live.js";
import { makeRun } from "./player-run.js";

const PACE = 1100; // milliseconds a step while it plays

function render({ model, el }) {
  const state = model.get("state");
  const live = Boolean(model.get("live"));
  const root = element("div", { class: "player" });
  for (const [term, [light, dark]] of Object.entries(state.inks)) {
    root.style.setProperty(`--${term}-light`, light);
    root.style.setProperty(`--${term}-dark`, dark);
  }
  const words = { outcomes: state.outcomes, collapse: state.collapse };
  const about = element("p", { class: "player-about" });
  const parting = element("p", { class: "player-parting" });
  const told = element("p", { class: "player-told", "aria-live": "polite" });
  const runs = element("div", { class: "player-runs" });
  const transport = makeTransport(go);
  let pair, sides, t, last;

  function open(packed, at = 0) {
    transport.stop();
    pair = openPair(packed, state.alphabet);
    last = lastTime(pair);
    sides = pair.runs.map((run) => makeRun(pair, { ...run, mark: state.marks[run.name] }, words));
    runs.replaceChildren(...sides.map((side) => side.root));
    say(about, pair.about);
    say(parting, pair.parting);
    transport.resize(last, pair.parts);
    go(Math.min(at, last));
  }

  function go(wanted, playing = false) {
    t = Math.max(0, Math.min(last, wanted));
    for (const side of sides) side.show(t, last);
    change(told, { "aria-live": playing ? "off" : "polite" });
    told.replaceChildren(...pair.runs.map((run) => {
      const sentence = run.sentence[Math.min(t, run.steps)];
      return element("span", {}, element("strong", {}, `${run.title}: `), sentence, " ");
    }));
    transport.show(t, last, pair.valuetexts[t]);
    return t < last;
  }

  let form = null;
  const menu = makeMenu(state.pairs, (place) => {
    form?.follow(state.pairs[place]);
    open(state.pairs[place]);
  });
  if (live) {
    form = makeForm(model, state.choices, (packed) => {
      menu.clear(); // what is shown is none of its episodes
      open(packed);
    });
    root.append(form.root);
  }
  if (state.pairs.length > 1) root.prepend(menu.root);
  root.append(about, transport.root, parting, runs, element("div", { class: "player-foot" }, makeLegend(), told));
  root.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, summary, .player-table-holder");
    const move = { ArrowLeft: t - 1, ArrowRight: t + 1, Home: 0, End: last }[event.key];
    if (typing || move === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    transport.stop();
    go(move);
  });
  form?.follow(state.pairs[0]);
  open(state.pairs[0]);
  el.append(root);
  return () => {
    transport.stop();
    form?.close();
  };
}

// The menu of the episodes that came with the page.
function makeMenu(pairs, choose) {
  const id = freshId("player-episode");
  const menu = element("select", { id, class: "player-menu", ...KEEPS_KEYS });
  const groups = new Map();
  pairs.forEach((pair, place) => {
    if (!groups.has(pair.group)) {
      groups.set(pair.group, element("optgroup", { label: pair.group }));
      menu.append(groups.get(pair.group));
    }
    groups.get(pair.group).append(element("option", { value: place }, pair.label));
  });
  menu.addEventListener("change", () => choose(Number(menu.value)));
  const root = element("div", { class: "player-choice" }, element("label", { for: id }, "Episode"), menu);
  return { root, clear: () => (menu.selectedIndex = -1) };
}

const ICONS = {
  "First step": "M3 3h2v10H3zM13 3v10L6 8z",
  "Previous step": "M11.5 3v10L4.5 8z",
  Play: "M4 2.5v11L13.5 8z",
  Pause: "M4 3h3v10H4zM9 3h3v10H9z",
  "Next step": "M4.5 3v10l7-5z",
  "Last step": "M11 3h2v10h-2zM3 3v10l7-5z",
};

// Buttons and slider. `go(t, playing)` shows a time and says whether more follow.
function makeTransport(go) {
  let now = 0, end = 0, parts = null, timer = 0;
  const button = (name, act) => {
    const icon = shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, shape("path", { d: ICONS[name] }));
    const made = element("button", { type: "button", class: "player-button", "aria-label": name, title: name }, icon);
    made.addEventListener("click", act);
    return made;
  };
  const jump = (to) => () => {
    stop();
    go(to());
  };
  const play = button("Play", () => (timer ? stop() : start()));
  const first = button("First step", jump(() => 0));
  const before = button("Previous step", jump(() => now - 1));
  const after = button("Next step", jump(() => now + 1));
  const final = button("Last step", jump(() => end));
  const differ = element("button", { type: "button", class: "player-button player-differ" }, "Where they part");
  differ.addEventListener("click", jump(() => parts));
  const id = freshId("player-step");
  const slider = element("input", { id, type: "range", min: 0, step: 1, class: "player-slider", ...KEEPS_KEYS });
  const shown = element("output", { for: id, class: "player-step" });
  slider.addEventListener("input", jump(() => Number(slider.value)));
  const buttons = element("div", { class: "player-buttons", role: "group", "aria-label": "Playback" },
    first, before, play, after, final, differ);
  const label = element("label", { for: id, class: "player-slider-label" }, "Step");
  const root = element("div", { class: "player-transport" }, buttons,
    element("div", { class: "player-slide" }, label, slider, shown));

  function namePlay(playing) {
    const name = playing ? "Pause" : "Play";
    change(play, { "aria-label": name, title: name });
    change(play.firstChild.firstChild, { d: ICONS[name] });
  }
  function start() {
    namePlay(true);
    if (now === end) go(0, true);
    timer = setInterval(() => {
      if (!go(now + 1, true)) stop();
    }, PACE);
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    namePlay(false);
  }
  return {
    root,
    stop,
    resize(last, parting) {
      end = last;
      parts = parting;
      change(slider, { max: last });
      differ.hidden = parting === null;
    },
    show(t, last, text) {
      now = t;
      slider.value = t;
      change(slider, { "aria-valuetext": text });
      say(shown, `${t} of ${last}`);
      // a button that loses its use keeps its place and its focus
      for (const [one, off] of [[first, t === 0], [before, t === 0], [after, t === last], [final, t === last]]) {
        change(one, { "aria-disabled": off ? "true" : null });
      }
    },
  };
}

function makeLegend() {
  const terms = { c: "criticality", s: "staleness", u: "uncertainty", d: "dependency role" };
  const items = Object.entries(terms).map(([term, name]) => element("span", { class: "player-key" },
    element("span", { class: `player-term player-term-${term}`, "aria-hidden": "true" }, term), ` ${name}`));
  const signs = [
    ["player-sign player-sign-wrong", "✗", "believed wrongly"],
    ["player-sign player-sign-unknown", "?", "not known"],
    ["player-sign player-sign-ghost", "", "where the agent believes it"],
    ["player-sign player-sign-lens", "", "asked about"],
    ["player-sign player-sign-aim", "", "proposed action"],
    ["player-sign", "↯", "changed by the world"],
  ].map(([kind, sign, text]) => element("span", { class: "player-key" },
    element("span", { class: kind, "aria-hidden": "true" }, sign), ` ${text}`));
  return element("p", { class: "player-legend" },
    element("strong", {}, "The drawing is the truth."), ...signs, ...items);
}

export default { render };
