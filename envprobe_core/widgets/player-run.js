// One policy's side of the player: its drawing, what it decided and did, its scores and its accuracy.
import { change, element, freshId, say, shape } from "./dom.js";
import { swatch } from "./marks.js";
import { timeOf } from "./player-data.js";
import { drawGraph } from "./player-graph.js";
import { deepest, drawRooms } from "./player-rooms.js";
import { CURVE_BOX, accuracyLine, scoreRows } from "./player-scores.js";
import { fieldTable } from "./player-table.js";
import { drawTools } from "./player-tools.js";

const DRAWN = { tools: drawTools, rooms: drawRooms, graph: drawGraph };

// Builds one side and returns {root, show(t)}.
export function makeRun(pair, run, words) {
  const chip = element("span", { class: "player-chip" });
  const name = element("span", { class: "player-name" }, ...(run.mark ? [swatch(run.mark)] : []), run.title);
  const picture = shape("svg", { role: "img", class: "player-scene" });
  const facts = element("p", { class: "player-facts" });
  const story = element("dl", { class: "player-story" });
  const bars = element("ul", { class: "player-scores" });
  const scores = element(
    "div", { class: "player-score-block" },
    element("p", { class: "player-small" }, scoreCaption(run)), bars,
  );
  const line = shape("svg", { role: "img", viewBox: CURVE_BOX, class: "player-line" });
  const curve = element("div", {}, element("p", { class: "player-small" }, curveCaption(run, pair)), line);
  const holder = element("div", { class: "player-table-holder", tabindex: "0", role: "region" });
  change(holder, { "aria-label": `All fields, ${run.title}` });
  const details = element("details", {}, element("summary", {}, "All fields as a table"), holder);
  const depth = pair.scene.kind === "rooms" ? deepest(pair.scene, pair.runs) : 0;
  let now = 0;
  const fill = () => {
    if (!details.open) return;
    const caption = `${run.title}, step ${timeOf(run, now)}`;
    holder.replaceChildren(fieldTable(pair.scene, run, timeOf(run, now), caption));
  };
  details.addEventListener("toggle", fill);
  const root = element(
    "section", { class: "player-run", "aria-label": run.title, id: freshId("player-run") },
    element("div", { class: "player-run-head" }, name, chip), picture, facts, story, scores, curve, details,
  );

  function show(t, last) {
    now = t;
    const at = timeOf(run, t);
    const over = at === run.steps;
    say(chip, over ? "episode over" : words.outcomes[run.outcome[at]]);
    change(chip, { class: `player-chip player-chip-${over ? "over" : run.outcome[at]}` });
    drawScene(pair.scene, run, at, depth, picture);
    const shown = run.accuracy[at].toFixed(2);
    facts.replaceChildren(
      element("span", {}, `A = ${shown}, ${run.right[at]} of ${pair.scene.fields.length} right`),
      pips(run.used[at], run.budget),
    );
    story.replaceChildren(...storyLines(run, at).flatMap(([term, texts]) => [
      element("dt", {}, term), ...texts.map((text) => element("dd", {}, text)),
    ]));
    bars.replaceChildren(...(over ? [] : scoreRows(pair.scene, run, at)));
    line.replaceChildren(...accuracyLine(run, at, last, words.collapse));
    change(line, { "aria-label": `Accuracy up to step ${at}, where it is ${shown}; collapse below ${words.collapse}` });
    fill();
  }
  return { root, show };
}

function drawScene(scene, run, at, depth, picture) {
  const over = at === run.steps;
  const action = over ? -1 : run.action[at];
  const moment = {
    run,
    t: at,
    depth,
    probed: over ? -1 : run.probe[at],
    moved: at > 0 ? run.moved[at - 1] : [],
    aim: action >= 0 ? scene.aims[action] : null,
  };
  const { height, parts } = DRAWN[scene.kind](scene, moment);
  picture.replaceChildren(...parts);
  change(picture, { viewBox: `0 0 340 ${height}`, "aria-label": run.sentence[at] });
}

// What happened at a step, as a list of headings and texts.
function storyLines(run, at) {
  if (at === run.steps) return [["End", [run.sentence[at]]]];
  const lines = [["Gate", [run.gate[at]]]];
  if (run.reply[at]) lines.push(["Probe", [run.reply[at]]]);
  lines.push([run.reply[at] ? "Action" : "Acts", [run.deed[at]]]);
  lines.push(["World", run.world[at].length ? run.world[at] : ["stays as it is"]]);
  const wrote = run.wrote[at].map(([text, right]) => (right ? text : `${text} (wrong)`));
  lines.push(["Writes", wrote.length ? wrote : ["nothing new"]]);
  return lines;
}

function scoreCaption(run) {
  const added = run.own_score
    ? "The policy compares a score of its own; for comparison"
    : run.threshold === null
      ? "This policy compares no score; for comparison"
      : `Scores ρ, gate at ${run.threshold.toFixed(2)}`;
  return `${added}: ${run.terms.join(" + ")}`;
}

function curveCaption(run, pair) {
  const scored = run.track ? `; dotted: the accuracy that ${pair.protocol} scores` : "";
  return `Accuracy so far: share of right beliefs${scored}`;
}

function pips(used, budget) {
  const full = "●".repeat(Math.min(used, budget)) + "○".repeat(Math.max(0, budget - used));
  return element(
    "span", { class: "player-budget" },
    `${used} of ${budget} probes used `, element("span", { "aria-hidden": "true" }, full),
  );
}
