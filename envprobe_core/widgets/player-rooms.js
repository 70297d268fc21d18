// ObjectStateWorld drawn: rooms in a row with their doors, what lies in them, and the agent.
import { shape } from "./dom.js";
import { standing } from "./player-data.js";
import { badge, flash, lens, padlock, person, token, tray } from "./player-marks.js";

const ROW_WIDTH = 340, ROW_MARGIN = 4, ROW_ROOMS = 10, ROW_STACK = 19, ROW_TOP = 18, ROW_FOOT = 25;

export function drawRooms(scene, moment) {
  const columns = Math.min(scene.rooms, ROW_ROOMS);
  const wide = (ROW_WIDTH - 2 * ROW_MARGIN) / columns;
  const tall = 30 + ROW_STACK * moment.depth;
  const left = (room) => ROW_MARGIN + wide * (room % ROW_ROOMS);
  const top = (room) => ROW_TOP + (tall + ROW_TOP + ROW_FOOT) * Math.floor(room / ROW_ROOMS);
  const place = { wide, tall, left, top };
  const parts = [];
  for (let room = 0; room < scene.rooms; room++) parts.push(...drawRoom(scene, moment, room, place));
  scene.doors.forEach((door, number) => parts.push(...drawDoor(moment, door, number, place)));
  parts.push(...drawThings(scene, moment, place));
  const y = top(scene.rooms - 1) + tall + ROW_FOOT + 13;
  parts.push(...tray(inHand(scene, moment), y, ROW_WIDTH));
  return { height: y + 16, parts };
}

// The most things that one room ever holds or is believed to hold in any of the runs, so that the drawings
// keep their size and stand at the same height.
export function deepest(scene, runs) {
  let most = 1;
  for (const run of runs) {
    for (let t = 0; t <= run.steps; t++) {
      const counts = new Array(scene.rooms + 1).fill(0);
      for (const { location } of scene.things) {
        const [is, held] = [run.gold[t][location], run.belief[t][location]];
        counts[is] += 1;
        if (held !== is && held >= 0) counts[held] += 1;
      }
      most = Math.max(most, ...counts.slice(0, scene.rooms));
    }
  }
  return most;
}

function drawRoom(scene, moment, room, { wide, tall, left, top }) {
  const { aim, probed, run, t } = moment;
  const [x, y] = [left(room), top(room)];
  const parts = [
    shape("text", { x: x + wide / 2, y: y - 5, class: "player-note player-middle" }, String(room)),
  ];
  if (aim?.[0] === "room" && aim[1] === room) {
    parts.push(shape("rect", {
      x: x + 2, y: y + 1, width: wide - 4, height: tall - 2, rx: 3,
      class: probed < 0 ? "player-aim" : "player-aim player-put-off",
    }));
  }
  const ends = [...(room === 0 ? [x] : []), ...(room === scene.rooms - 1 ? [x + wide] : [])];
  const outer = ends.map((end) => `M${end} ${y}v${tall}`).join("");
  const walls = `M${x} ${y}h${wide}M${x} ${y + tall}h${wide}${outer}`;
  parts.push(shape("path", { d: walls, class: "player-wall" }));
  if (run.place[t] === room) parts.push(...person(x + wide / 2, y + tall - 11, "true"));
  return parts;
}

function drawDoor(moment, door, number, { tall, left, top, wide }) {
  const { run, t } = moment;
  const [x, y] = [left(number) + wide, top(number)];
  const locked = run.gold[t][door.field] === 1;
  const parts = [
    shape("path", { d: `M${x} ${y}v${tall}`, class: locked ? "player-door player-shut" : "player-door" }),
  ];
  const foot = y + tall + 8;
  if (moment.aim?.[0] === "door" && moment.aim[1] === number) {
    parts.push(shape("circle", { cx: x, cy: foot, r: 11, class: "player-aim" }));
  }
  if (door.key >= 0) {
    parts.push(...padlock(x, foot - 2, locked));
    parts.push(shape("text", { x, y: foot + 15, class: "player-key-name" }, `k${door.key}`));
  }
  const [aside, above] = door.key >= 0 ? [9, 4] : [0, 0];
  parts.push(...badge(standing(run, t, door.field), x + aside, foot - above));
  if (moment.moved.includes(door.field)) parts.push(flash(x - 10, foot + 1));
  if (moment.probed === door.field) parts.push(...lens(x, foot, 12));
  return parts;
}

// Things where they are, and ghosts where they are believed to be; those in a room stand above each other.
function drawThings(scene, moment, { wide, left, top }) {
  const { run, t } = moment;
  const heights = new Array(scene.rooms).fill(0);
  const parts = [];
  const put = (thing, room, kind, state, asked, moved) => {
    const [x, y] = [left(room) + wide / 2, top(room) + 13 + ROW_STACK * heights[room]++];
    parts.push(...token(thing, x, y, kind), ...badge(state, x + 12, y - 8));
    if (moved) parts.push(flash(x - 11, y - 6));
    if (asked) parts.push(...lens(x, y, 18));
  };
  scene.things.forEach((thing, number) => {
    const [is, held] = [run.gold[t][thing.location], run.belief[t][thing.location]];
    const asked = moment.probed === thing.location;
    const moved = moment.moved.includes(thing.location);
    const aimed = moment.aim?.[0] === "thing" && moment.aim[1] === number ? "true player-aimed" : "true";
    if (is < scene.rooms) put(thing, is, aimed, standing(run, t, thing.location), asked, moved);
    if (held !== is && held >= 0 && held < scene.rooms) put(thing, held, "ghost", "right", false, false);
  });
  return parts;
}

// What is in the agent's hand, and what it believes to be: the field "held" and the location "held".
export function inHand(scene, moment) {
  const { run, t } = moment;
  const shown = [];
  for (const thing of scene.things) {
    const location = thing.location;
    const field = thing.held ?? location;
    const inside = (values) =>
      thing.held === undefined ? wordIsHeld(scene, location, values[location]) : values[field] === 1;
    const [is, held] = [inside(run.gold[t]), inside(run.belief[t])];
    const unknown = run.belief[t][field] === -1;
    if (!is && !held && !(unknown && moment.probed === field)) continue;
    shown.push({
      thing,
      kind: is ? "true" : "ghost",
      state: standing(run, t, field),
      asked: moment.probed === field,
      moved: moment.moved.includes(field),
    });
  }
  return shown;
}

// The last value of a location means that the thing is held.
function wordIsHeld(scene, field, value) {
  return value === scene.words[scene.word_of[field]].length - 2;
}
