// The signs of the player's drawings. What is drawn is the truth; a mark says how the belief stands to it,
// always by its shape as well as by its colour.
import { shape } from "./dom.js";

// A cross for a wrong belief, a question mark for an unknown one; nothing for a right one.
export function badge(state, x, y) {
  if (state === "right") return [];
  const disc = shape("circle", { cx: x, cy: y, r: 5.2, class: `player-badge-${state}` });
  if (state === "unknown") {
    return [disc, shape("text", { x, y: y + 3.1, class: "player-badge-sign" }, "?")];
  }
  const cross = `M${x - 2.1} ${y - 2.1}L${x + 2.1} ${y + 2.1}M${x - 2.1} ${y + 2.1}L${x + 2.1} ${y - 2.1}`;
  return [disc, shape("path", { d: cross, class: "player-badge-cross" })];
}

// A flash beside what the world has changed by itself since the step before.
export function flash(x, y) {
  return shape("path", {
    d: `M${x + 1.5} ${y - 6}L${x - 3} ${y + 0.8}H${x}L${x - 1.5} ${y + 6}L${x + 3} ${y - 0.8}H${x}Z`,
    class: "player-flash",
  });
}

// A lens around what the policy asks about.
export function lens(x, y, r) {
  const reach = r * Math.SQRT1_2;
  return [
    shape("circle", { cx: x, cy: y, r, class: "player-lens" }),
    shape("path", { d: `M${x + reach} ${y + reach}l5.5 5.5`, class: "player-lens-handle" }),
  ];
}

// A padlock: shut where locked, its shackle up where open.
export function padlock(x, y, locked) {
  const shackle = locked ? `M${x - 3} ${y}v-3a3 3 0 0 1 6 0v3` : `M${x - 3} ${y}v-4.5a3 3 0 0 1 6 0`;
  return [
    shape("path", { d: shackle, class: "player-shackle" }),
    shape("rect", {
      x: x - 4.6, y, width: 9.2, height: 7, rx: 1.4,
      class: locked ? "player-lock" : "player-lock player-lock-open",
    }),
  ];
}

export const TOKEN = { width: 27, height: 15 };

// A thing with its name; a ghost where it is only believed to be.
export function token(thing, x, y, kind) {
  const { width, height } = TOKEN;
  const role = thing.goal ? "goal" : thing.key ? "key" : "box";
  return [
    shape("rect", {
      x: x - width / 2, y: y - height / 2, width, height, rx: 4,
      class: `player-token player-${role} player-${kind}`,
    }),
    shape("text", { x, y: y + 3.6, class: `player-token-name player-${role} player-${kind}` }, thing.label),
  ];
}

// The agent itself: a head and shoulders; dashed where it only believes to be.
export function person(x, y, kind) {
  const body = `M${x - 6.5} ${y + 7}a6.5 7 0 0 1 13 0z`;
  return [
    shape("path", { d: body, class: `player-person player-${kind}` }),
    shape("circle", { cx: x, cy: y - 4.4, r: 3.6, class: `player-person player-${kind}` }),
  ];
}

// A hand's width of tokens: what is held, and what is only believed to be.
export function tray(things, y, width) {
  const parts = [shape("text", { x: 6, y: y + 3.6, class: "player-note" }, "in hand:")];
  let x = 70;
  for (const { thing, kind, state, asked, moved } of things) {
    parts.push(...token(thing, x, y, kind), ...badge(state, x + 12, y - 7));
    if (asked) parts.push(...lens(x, y, 16));
    if (moved) parts.push(flash(x - 16, y));
    x = Math.min(x + 42, width - 18);
  }
  if (!things.length) parts.push(shape("text", { x: 57, y: y + 3.6, class: "player-note" }, "nothing"));
  return parts;
}
