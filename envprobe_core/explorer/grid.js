// Reads the grid that envprobe_core/explorer/encoding.py writes; the names are that file's.

const POOL = "pool";
const ESCAPE = 255; // a byte that says: the rest of this number stands among the large ones
const SUMMED = new Set(["fires", "useful", "repeated"]);
const INTERVALS = new Set(["accuracy", "success", "useful_rate"]);
const NONE = -1; // in whole numbers, a value that does not exist

// Opens a payload: `read(setting)` returns the reading of {world, protocol, policy, budget, threshold}, or
// null where the grid has none. A regime, if the setting names one, must be the grid's.
export async function openGrid(payload) {
  const numbers = wholeNumbers(await inflate(payload.data));
  const { rows, used } = settings(payload, numbers);
  const order = follow(payload, rows);
  const columns = restoreAll(payload, numbers, used, order);
  return { read: (setting) => readingOf(payload, columns, rowOf(payload, rows, setting), setting.world) };
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// One byte a number, two more for the large ones behind all; 0, 1, 2, 3 stand for 0, -1, 1, -2.
function wholeNumbers(buffer) {
  const view = new DataView(buffer);
  const count = view.getUint32(0, true);
  const numbers = new Int32Array(count);
  let large = 4 + count;
  for (let at = 0; at < count; at += 1) {
    let natural = view.getUint8(4 + at);
    if (natural === ESCAPE) {
      natural += view.getUint16(large, true);
      large += 2;
    }
    numbers[at] = natural % 2 ? -(natural + 1) / 2 : natural / 2;
  }
  return numbers;
}

const keyOf = (protocol, world, policy) => `${protocol}/${world}/${policy}`;

// The reading of every setting, each an array with the budgets inside and the thresholds outside.
function settings({ protocols, worlds, policies, budgets }, numbers) {
  const rows = new Map();
  let used = 0;
  let sum = 0;
  for (const protocol of protocols) {
    for (const world of worlds) {
      for (const [policy, thresholds] of Object.entries(policies)) {
        const own = new Int32Array(thresholds * budgets.length);
        for (let at = 0; at < own.length; at += 1) own[at] = sum += numbers[used++];
        rows.set(keyOf(protocol, world, policy), own);
      }
    }
  }
  return { rows, used };
}

// Which reading each is predicted from (-1: none), and of a pooled one the worlds' readings.
function follow({ protocols, worlds, policies, budgets, readings }, rows) {
  const before = new Int32Array(readings).fill(-1);
  const members = new Array(readings).fill(null);
  const single = worlds.filter((world) => world !== POOL);
  let met = 0;
  for (const protocol of protocols) {
    for (const world of worlds) {
      for (const policy of Object.keys(policies)) {
        const own = rows.get(keyOf(protocol, world, policy));
        const parts = single.map((name) => rows.get(keyOf(protocol, name, policy)));
        for (let at = 0; at < own.length; at += 1) {
          if (own[at] < met) continue;
          if (at % budgets.length > 0) before[met] = own[at - 1];
          else if (at > 0) before[met] = own[at - budgets.length];
          if (world === POOL) members[met] = parts.map((part) => part[at]);
          met += 1;
        }
      }
    }
  }
  return { before, members };
}

function restoreAll({ widths, readings }, numbers, used, order) {
  const columns = {};
  let start = used;
  for (const [name, width] of Object.entries(widths)) {
    const planes = numbers.subarray(start, start + width * readings);
    columns[name] = restored(name, planes, width, order);
    start += width * readings;
  }
  return columns;
}

// Undoes the prediction of one measure: from planes [column][reading] to values [reading][column].
function restored(name, planes, width, { before, members }) {
  const count = before.length;
  const values = new Int32Array(width * count);
  for (let row = 0; row < count; row += 1) {
    let sum = 0;
    for (let column = 0; column < width; column += 1) {
      const change = planes[column * count + row];
      sum += change;
      const lean = before[row] < 0 ? 0 : values[before[row] * width + column];
      values[row * width + column] = lean + (name === "curve" ? sum : change);
    }
  }
  addExpected(name, values, width, members);
  if (INTERVALS.has(name)) placeEnds(values);
  return values;
}

function addExpected(name, values, width, members) {
  members.forEach((worlds, row) => {
    if (!worlds) return;
    for (let column = 0; column < width; column += 1) {
      const total = worlds.reduce((sum, world) => sum + values[world * width + column], 0);
      values[row * width + column] += SUMMED.has(name) ? total : Math.floor(total / worlds.length);
    }
  });
}

// Intervals are stored as distances from their mean.
function placeEnds(values) {
  for (let at = 0; at < values.length; at += 3) {
    values[at + 1] = values[at] - values[at + 1];
    values[at + 2] = values[at] + values[at + 2];
  }
}

function rowOf({ regime, policies, budgets, thresholds }, rows, setting) {
  const own = rows.get(keyOf(setting.protocol, setting.world, setting.policy));
  const budget = budgets.indexOf(setting.budget);
  const threshold = policies[setting.policy] > 1 ? thresholds.indexOf(setting.threshold) : 0;
  const elsewhere = setting.regime !== undefined && setting.regime !== regime;
  if (!own || budget < 0 || threshold < 0 || elsewhere) return null;
  return own[threshold * budgets.length + budget];
}

function readingOf({ worlds, widths, episodes, units }, columns, row, world) {
  if (row === null) return null;
  const whole = (name) => Array.from(columns[name].subarray(row * widths[name], (row + 1) * widths[name]));
  const scaled = (name, unit) => whole(name).map((part) => (part === NONE ? null : part / unit));
  const fires = whole("fires");
  const rate = scaled("useful_rate", units.share);
  return {
    n: episodes * (world === POOL ? worlds.length - 1 : 1),
    accuracy: scaled("accuracy", units.share),
    success: scaled("success", units.share),
    curve: scaled("curve", units.curve),
    fires,
    useful: [whole("useful")[0], fires.reduce((sum, count) => sum + count, 0)],
    useful_rate: rate[0] === null ? null : rate,
    repeated: whole("repeated")[0],
  };
}
