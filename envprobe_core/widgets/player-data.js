// The episode player's data: packed tables opened, and what a table says of one field at one time.

// Opens a packed table: rows[line][field] with the values themselves (see player/packing.py).
export function unpack(packed, alphabet) {
  return packed.lines.map((line) => [...line].map((letter) => packed.levels[alphabet.indexOf(letter)]));
}

export const TERMS = ["c", "s", "u", "d"];

// Opens one policy's episode: every packed table is replaced by its rows.
export function openRun(run, alphabet) {
  const opened = { ...run };
  for (const name of ["belief", "gold", "confidence", "staleness", ...TERMS]) {
    opened[name] = unpack(run[name], alphabet);
  }
  return opened;
}

export function openPair(pair, alphabet) {
  return { ...pair, runs: pair.runs.map((run) => openRun(run, alphabet)) };
}

// Says whether a belief is right, wrong or unknown. -1 is the engine's "unknown".
export function standing(run, t, field) {
  const held = run.belief[t][field];
  if (held === run.gold[t][field]) return "right";
  return held === -1 ? "unknown" : "wrong";
}

// Says what a field's value means; the first word of each list stands for the unknown.
export function wordFor(scene, field, value) {
  return scene.words[scene.word_of[field]][value + 1];
}

// Adds a field's terms up as the policy does, ((c + s) + u) + d over the terms it keeps.
export function rho(run, t, field) {
  return run.terms.map((term) => run[term][t][field]).reduce((sum, term) => sum + term);
}

// The time of a run that belongs to a time of the pair: an episode that has ended stays as it ended.
export function timeOf(run, t) {
  return Math.min(t, run.steps);
}

export function lastTime(pair) {
  return Math.max(...pair.runs.map((run) => run.steps));
}
