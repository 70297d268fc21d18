// Every field of one moment as a table: what the drawing and the bars show, for readers who prefer to read.
import { element } from "./dom.js";
import { TERMS, rho, standing, wordFor } from "./player-data.js";

const HEADS = ["field", "truth", "belief", "standing", "confidence", "reported age"];
const SIGNS = { right: "✓ right", wrong: "✗ wrong", unknown: "? unknown" };

export function fieldTable(scene, run, t, caption) {
  const decided = t < run.steps;
  const heads = [...HEADS, ...(decided ? [...TERMS, "ρ"] : [])];
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const lines = scene.fields.map((name, field) => {
    const state = standing(run, t, field);
    const cells = [
      wordFor(scene, field, run.gold[t][field]),
      wordFor(scene, field, run.belief[t][field]),
      SIGNS[state],
      `${run.confidence[t][field]}%`,
      run.staleness[t][field],
    ];
    if (decided) {
      cells.push(...TERMS.map((term) => run[term][t][field].toFixed(2)), rho(run, t, field).toFixed(2));
    }
    return element(
      "tr",
      { class: `player-line-${state}` },
      element("th", { scope: "row" }, name),
      ...cells.map((text) => element("td", {}, String(text))),
    );
  });
  return element(
    "table",
    { class: "player-table" },
    element("caption", {}, caption),
    element("thead", {}, head),
    element("tbody", {}, ...lines),
  );
}
