// The form of a live player: any episode, recorded anew by the engine.
import { KEEPS_KEYS, element, freshId, say } from "./dom.js";

const PATIENCE_MS = 1000; // until the reader is told that the engine is busy

// Builds the form; `receive(pair)` gets every new episode. Returns {root, close, follow}.
export function makeForm(model, choices, receive) {
  const controls = new Map();
  const message = element("p", { class: "player-message", role: "alert" });
  const busy = element("p", { class: "player-small", role: "status" });
  const root = element("form", { class: "player-form", "aria-label": "Choose an episode" });
  for (const [name, label, kind] of FORM) {
    const id = freshId("player-choice");
    const control = kind ? numberInput(id, kind, choices.setting[name]) : menu(id, choices[name], choices.setting[name]);
    controls.set(name, control);
    root.append(element("div", { class: "player-choice" }, element("label", { for: id }, label), control));
  }
  root.append(message, busy);

  let request = 0;
  let timer = 0;
  function ask() {
    request += 1;
    const setting = Object.fromEntries([...controls].map(([name, control]) => [name, control.value]));
    clearTimeout(timer);
    timer = setTimeout(() => say(busy, "The engine is busy."), PATIENCE_MS);
    model.send({ kind: "ask", request, setting });
  }
  function answer(got) {
    if (got?.kind !== "answer" || got.request !== request) return; // an earlier question's
    clearTimeout(timer);
    say(busy, "");
    say(message, got.error ?? "");
    if (!got.error) receive(got.pair);
  }
  root.addEventListener("change", ask);
  root.addEventListener("submit", (event) => event.preventDefault());
  model.on("msg:custom", answer);
  const close = () => {
    clearTimeout(timer);
    model.off("msg:custom", answer);
  };
  // Shows in the form what a menu's episode was recorded with.
  function follow(pair) {
    const { world, seed, regime, protocol, profile, runs } = pair;
    const shown = { world, seed, regime, protocol, profile, first: runs[0].name, second: runs[1].name };
    for (const [name, value] of Object.entries({ ...shown, budget: "", threshold: "" })) {
      controls.get(name).value = value;
    }
    request += 1; // an answer under way is out of date
    clearTimeout(timer);
    say(busy, "");
    say(message, "");
  }
  return { root, close, follow };
}

const FORM = [
  ["world", "World"],
  ["first", "Policy"],
  ["second", "Beside"],
  ["protocol", "Protocol"],
  ["regime", "Regime"],
  ["profile", "Profile"],
  ["seed", "Seed", { min: 0, step: 1 }],
  ["budget", "Budget", { min: 0, step: 1, placeholder: "the regime’s" }],
  ["threshold", "Threshold", { step: "any", placeholder: "1.5" }],
];

function menu(id, options, chosen) {
  const made = element("select", { id, ...KEEPS_KEYS });
  for (const [value, text] of options) made.append(element("option", { value }, text));
  made.value = chosen;
  return made;
}

function numberInput(id, limits, value) {
  const made = element("input", { id, type: "number", ...limits, ...KEEPS_KEYS });
  made.value = value ?? "";
  return made;
}
