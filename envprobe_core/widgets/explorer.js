// The explorer: a setting in the reader's hand, and four plots and a table that follow it.

import { element, say } from "./dom.js";
import { controls } from "./explorer-controls.js";
import { curvePlot } from "./explorer-curves.js";
import { paretoPlot } from "./explorer-pareto.js";
import { readout } from "./explorer-readout.js";
import { firesPlot, ratesPlot } from "./explorer-rows.js";
import { openLive, openStatic } from "./explorer-sources.js";
import { readFragment, writeFragment } from "./explorer-state.js";
import { openVocabulary } from "./explorer-vocabulary.js";
import { closeUp, copyLink } from "./explorer-tools.js";

const LINK_DELAY = 250; // milliseconds; browsers refuse to rewrite an address many times a second

async function render({ model, el }) {
  const { start, vocabulary: given, grid } = model.get("state");
  const live = model.get("live");
  const vocabulary = openVocabulary(given);
  const plots = [paretoPlot(), curvePlot(), firesPlot(), ratesPlot()];
  const table = readout();
  const message = element("p", { class: "ew-message", role: "alert" });
  const note = element("p", { class: "ew-note" });
  let setting = (!live && readFragment(location.hash, start, vocabulary)) || start;
  let timer = 0;

  function answer(asked, readings, others, words) {
    const printed = given.points.filter(({ world, policy }) => world === asked.world && asked.policies.includes(policy));
    const horizon = readings.values().next().value.curve.length - 1;
    const view = { setting: asked, readings, others, printed, vocabulary, horizon };
    plots.forEach((plot) => plot.update(view));
    table.update(view);
    say(message, "");
    say(note, words);
  }

  const refuse = (error) => say(message, error);
  const wait = () => say(note, "Waiting for the kernel, which is busy with something else.");
  const hooks = { answer, refuse, wait };
  const source = live ? openLive(model, hooks) : await openStatic(grid, hooks);

  function set(changes) {
    setting = { ...setting, ...changes };
    panel.update(setting);
    zoom.update(setting);
    const others = vocabulary.policies.map(({ name }) => name).filter((name) => !setting.policies.includes(name));
    source.ask(setting, others);
    if (live) return;
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(history.state, "", writeFragment(setting)), LINK_DELAY);
  }

  const panel = controls(vocabulary, live, set);
  const zoom = closeUp(set);
  const tools = live ? [zoom.root] : [zoom.root, copyLink(() => writeFragment(setting))];
  const legend = element("p", { class: "ew-hint" }, LEGEND[live ? "live" : "static"]);
  const root = element(
    "div",
    { class: "ew" },
    element("div", { class: "ew-inner" }, panel.root, message, element("div", { class: "ew-tools" }, ...tools),
      element("div", { class: "ew-figures" }, ...plots.map((plot) => plot.root)), legend, table.root, note),
  );
  el.append(root);

  function follow() {
    const linked = readFragment(location.hash, start, vocabulary);
    if (!linked) return;
    set(linked);
    root.scrollIntoView({ block: "start" });
  }

  set({});
  clearTimeout(timer); // the address changes when the reader changes something
  if (!live) {
    addEventListener("hashchange", follow);
    if (readFragment(location.hash, start, vocabulary)) root.scrollIntoView({ block: "start" });
  }
  return () => {
    removeEventListener("hashchange", follow);
    clearTimeout(timer);
    table.close();
    source.close();
  };
}

const CROSSES =
  "Lines through a mark are 95% intervals. A cross, or a stroke where the paper prints no success, is the " +
  "paper's own value, measured with its language model.";
const LEGEND = { live: CROSSES, static: `${CROSSES} Faint marks are the other policies at the same setting.` };

export default { render };
