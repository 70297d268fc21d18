// The numbers that the plots show: a table, and one sentence that a screen reader says when they settle.

import { element, keyed, say, sayWithSubscripts } from "./dom.js";
import { listed } from "./explorer-vocabulary.js";
import { swatch } from "./marks.js";

const SETTLED = 400; // milliseconds without a change, so that a drag is not read aloud tick by tick
const HEAD = ["Policy", "Accuracy A_H", "Task success", "Useful probes", "Repeated", "Probes an episode"];

const digits = (value) => value.toFixed(3);
const interval = ([, low, high]) => (low === null ? "" : `[${digits(low)}, ${digits(high)}]`);

// Returns {root, update(view), close()}. Roles are spelled out, since a phone shows the table as blocks.
export function readout() {
  const caption = element("caption");
  const heads = HEAD.map(() => element("th", { scope: "col", role: "columnheader" }));
  heads.forEach((head, i) => sayWithSubscripts(head, HEAD[i]));
  const body = element("tbody", { role: "rowgroup" });
  const top = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads));
  const table = element("table", { role: "table" }, caption, top, body);
  const sentence = element("p", { class: "ew-sentence", "aria-live": "polite" });
  let timer = 0;

  function update(view) {
    const { readings, vocabulary } = view;
    const names = [...readings.keys()];
    const { n } = readings.values().next().value;
    say(caption, `${where(view)}; ${n} episodes of each policy, the same seeds. In brackets: 95% intervals.`);
    const rows = keyed(body, names, (name) => row(vocabulary.policy(name)));
    names.forEach((name, i) => fill(rows[i], readings.get(name)));
    clearTimeout(timer);
    timer = setTimeout(() => say(sentence, tell(view)), sentence.textContent ? SETTLED : 0);
  }

  return { root: element("div", { class: "ew-readout" }, sentence, table), update, close: () => clearTimeout(timer) };
}

function row(policy) {
  const name = element("th", { scope: "row", role: "rowheader" }, swatch(policy), element("span", {}, policy.title));
  const cell = () => element("td", { role: "cell" }, element("span"), " ", element("small"));
  return element("tr", { role: "row" }, name, ...HEAD.slice(1).map(cell));
}

function fill(line, reading) {
  const { n, accuracy, success, useful, useful_rate: rate, repeated } = reading;
  const fired = useful[1];
  const told = [
    [digits(accuracy[0]), interval(accuracy)],
    [digits(success[0]), interval(success)],
    rate ? [digits(rate[0]), interval(rate)] : ["–", "no probe"],
    fired ? [digits(repeated / fired), `${repeated} of ${fired}`] : ["–", "no probe"],
    [(fired / n).toFixed(2), ""],
  ];
  told.forEach(([value, note], i) => {
    const [main, , small] = line.children[i + 1].childNodes;
    say(main, value);
    say(small, note);
  });
}

function where({ setting, vocabulary }) {
  const { world, protocol, budget, threshold } = setting;
  return `${vocabulary.world(world).title}, ${protocol}, B = ${budget}, ρ* = ${threshold}`;
}

function tell(view) {
  const best = (measure) => {
    const all = [...view.readings];
    const most = Math.max(...all.map(([, reading]) => reading[measure][0]));
    const names = all.filter(([, reading]) => reading[measure][0] === most).map(([name]) => name);
    return `${listed(names.map((name) => view.vocabulary.policy(name).title))} (${digits(most)})`;
  };
  const { budget, threshold } = view.setting;
  const leads = `most accurate is ${best("accuracy")}, most tasks are completed by ${best("success")}`;
  return `At budget ${budget} and threshold ${threshold}, ${leads}.`;
}
