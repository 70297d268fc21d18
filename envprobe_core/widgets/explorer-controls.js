// What the reader sets: native controls with labels, so that keyboard and screen reader work as they know.

import { change, element, freshId, KEEPS_KEYS, keyed, say } from "./dom.js";
import { listed } from "./explorer-vocabulary.js";
import { swatch } from "./marks.js";

// Returns {root, update(setting)}; `onChange` is told what the reader changed, as part of a setting.
export function controls(vocabulary, live, onChange) {
  const parts = [
    choice("World", "world", vocabulary.worlds, onChange),
    choice("Protocol", "protocol", vocabulary.protocols, onChange),
    sliders(vocabulary, live, onChange),
    policyBoxes(vocabulary, onChange),
    live ? engineFields(vocabulary, onChange) : pageNote(vocabulary),
  ];
  const root = element("form", { class: "ew-controls", "aria-label": "Setting" }, ...parts.map((part) => part.root));
  root.addEventListener("submit", (event) => event.preventDefault());
  return { root, update: (setting) => parts.forEach((part) => part.update(setting)) };
}

// One of a few: radio buttons in a row, with a line on the one chosen.
function choice(legend, name, options, onChange) {
  const group = freshId(`ew-${name}`);
  const inputs = options.map((option) => {
    const attributes = { type: "radio", name: group, value: option.name, id: freshId(group), ...KEEPS_KEYS };
    return element("input", attributes);
  });
  const buttons = options.map((option, i) => {
    inputs[i].addEventListener("change", () => onChange({ [name]: option.name }));
    const label = element("label", { for: inputs[i].id }, option.title ?? option.name);
    return element("span", { class: "ew-option" }, inputs[i], label);
  });
  const line = element("p", { class: "ew-hint" });
  const row = element("div", { class: "ew-options" }, ...buttons);
  const root = element("fieldset", { class: "ew-choice" }, element("legend", {}, legend), row, line);
  function update(setting) {
    options.forEach((option, i) => {
      inputs[i].checked = option.name === setting[name];
    });
    say(line, options.find((option) => option.name === setting[name])?.line ?? "");
    line.hidden = !line.textContent;
  }
  return { root, update };
}

// What a page without an engine holds, and how to get the rest.
function pageNote({ regime, regimes, seeds, profile, command }) {
  const { title } = regimes.find(({ name }) => name === regime);
  const held = `This page holds regime ${regime}, ${title}, with seeds ${seeds} and the agent profile ${profile.name}. Others: `;
  const root = element("p", { class: "ew-hint" }, held, element("code", {}, command), ", or this notebook in JupyterLab.");
  return { root, update() {} };
}

// A range input with its label, its value in words, and a hint below.
function slider(labelText, onInput) {
  const id = freshId("ew-slider");
  const input = element("input", { type: "range", id, "aria-describedby": `${id}-hint`, ...KEEPS_KEYS });
  const value = element("output", { for: id });
  const hint = element("p", { class: "ew-hint", id: `${id}-hint` });
  const head = element("div", { class: "ew-slider-head" }, element("label", { for: id }, labelText), value);
  input.addEventListener("input", () => onInput(Number(input.value)));
  return { root: element("div", { class: "ew-slider" }, head, input, hint), input, value, hint };
}

function sliders(vocabulary, live, onChange) {
  const both = [budgetSlider(vocabulary, onChange), thresholdSlider(vocabulary, live, onChange)];
  const root = element("div", { class: "ew-sliders" }, ...both.map((one) => one.root));
  return { root, update: (setting) => both.forEach((one) => one.update(setting)) };
}

function budgetSlider(vocabulary, onChange) {
  const { root, input, value, hint } = slider("Probe budget B", (budget) => onChange({ budget }));
  function update({ budget, horizon = vocabulary.horizon, regime = vocabulary.regime }) {
    const usual = vocabulary.regimes.find(({ name }) => name === regime).budget;
    change(input, { min: 0, max: vocabulary.budgets?.at(-1) ?? horizon, step: 1 });
    change(input, { "aria-valuetext": `${budget} of ${horizon} steps` });
    input.value = budget;
    say(value, `${budget} of ${horizon} steps`);
    say(hint, `The paper's budget for ${regime} is ${usual}.`);
  }
  return { root, update };
}

function thresholdSlider(vocabulary, live, onChange) {
  const { root, input, value, hint } = slider("Base threshold ρ*", (threshold) => onChange({ threshold }));
  const { thresholds } = vocabulary;
  change(input, { min: thresholds[0], max: thresholds.at(-1), step: thresholds[1] - thresholds[0] });
  const exact = element("input", { type: "number", step: "any", "aria-label": "Base threshold, any value", ...KEEPS_KEYS });
  onCommit(exact, (text) => onChange({ threshold: text === "" ? null : Number(text) }));
  if (live) value.replaceWith(exact);
  function update({ threshold, policies }) {
    if (threshold === null) return; // an empty field, which the engine refuses in words
    const text = live ? String(threshold) : threshold.toFixed(2);
    change(input, { "aria-valuetext": text });
    input.value = threshold;
    if (document.activeElement !== exact) exact.value = threshold;
    say(value, text);
    const readers = policies.map(vocabulary.policy).filter((policy) => policy.threshold);
    const names = readers.length ? `Used by ${listed(readers.map(({ short }) => short))}.` : "Used by none of these.";
    say(hint, `${names} The paper's is ${vocabulary.threshold}.`);
  }
  return { root, update };
}

// One box a policy, with the mark that it has in every plot.
function policyBoxes(vocabulary, onChange) {
  const boxes = vocabulary.policies.map((policy) => {
    const input = element("input", { type: "checkbox", id: freshId("ew-policy"), value: policy.name, ...KEEPS_KEYS });
    input.addEventListener("change", () => {
      const policies = boxes.filter((box) => box.input.checked).map((box) => box.input.value);
      if (policies.length) onChange({ policies });
      else input.checked = true; // something must be compared
    });
    const label = element("label", { for: input.id }, swatch(policy), policy.title);
    return { input, root: element("span", { class: "ew-box" }, input, label) };
  });
  const legend = element("legend", {}, "Policies to compare");
  const row = element("div", { class: "ew-boxes" }, ...boxes.map(({ root }) => root));
  const root = element("fieldset", { class: "ew-choice" }, legend, row);
  const update = ({ policies }) => boxes.forEach(({ input }) => (input.checked = policies.includes(input.value)));
  return { root, update };
}

// What only an engine can change: regime, horizon, seeds, profile.
function engineFields(vocabulary, onChange) {
  const regime = select("Regime", vocabulary.regimes, ({ name, title }) => `${name}, ${title}`, (name) => {
    const { horizon, budget } = vocabulary.regimes.find((one) => one.name === name);
    onChange({ regime: name, horizon, budget });
  });
  const profile = select("Agent profile", vocabulary.profiles, ({ name }) => name, (name) => onChange({ profile: name }));
  const horizon = field("Horizon H", { type: "number", min: 1, step: 1 }, (text) => onChange({ horizon: Number(text) }));
  const seeds = field("Seeds", { type: "text", spellcheck: "false" }, (text) => onChange({ seeds: text }));
  const fields = [
    [regime, "regime"],
    [horizon, "horizon"],
    [seeds, "seeds"],
    [profile, "profile"],
  ];
  const root = element("div", { class: "ew-fields" }, ...fields.map(([part]) => part.root));
  function update(setting) {
    for (const [{ input }, name] of fields) {
      if (document.activeElement !== input && input.value !== String(setting[name])) input.value = setting[name];
    }
  }
  return { root, update };
}

function select(labelText, options, told, onPick) {
  const id = freshId("ew-select");
  const all = options.map((option) => element("option", { value: option.name }, told(option)));
  const input = element("select", { id, ...KEEPS_KEYS }, ...all);
  input.addEventListener("change", () => onPick(input.value));
  return { input, root: element("div", { class: "ew-field" }, element("label", { for: id }, labelText), input) };
}

// Tell of a text when the reader leaves it or presses Enter, which JupyterLab would take for itself.
function onCommit(input, onSet) {
  input.addEventListener("change", () => onSet(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    onSet(input.value);
  });
}

function field(labelText, attributes, onSet) {
  const id = freshId("ew-field");
  const input = element("input", { id, ...attributes, ...KEEPS_KEYS });
  onCommit(input, onSet);
  return { input, root: element("div", { class: "ew-field" }, element("label", { for: id }, labelText), input) };
}
