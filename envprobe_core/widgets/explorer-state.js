// What the reader has chosen, and how a link says it. A setting is
// {world, protocol, policies, budget, threshold, close}; live, also {regime, profile, seeds, horizon}.

// Read a link's fragment. What it does not say, or says of something unknown, stays as it is in `setting`;
// a fragment that is no setting at all (a heading's, say) gives null.
export function readFragment(fragment, setting, vocabulary) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const known = Object.entries(READERS).filter(([name]) => given.has(name));
  if (!known.length) return null;
  const changes = known.map(([name, read]) => [name, read(given.get(name), vocabulary)]);
  return { ...setting, ...Object.fromEntries(changes.filter(([, value]) => value !== null)) };
}

const READERS = {
  world: (text, vocabulary) => named(text, vocabulary.worlds),
  protocol: (text, vocabulary) => named(text, vocabulary.protocols),
  policies: (text, vocabulary) => {
    const names = vocabulary.policies.map((policy) => policy.name);
    const asked = text.split(",");
    const chosen = names.filter((name) => asked.includes(name));
    return chosen.length ? chosen : null;
  },
  budget: (text, vocabulary) => onScale(text, vocabulary.budgets),
  threshold: (text, vocabulary) => onScale(text, vocabulary.thresholds),
  close: (text) => (text === "yes" || text === "no" ? text === "yes" : null),
};

function named(text, choices) {
  return choices.some((choice) => choice.name === text) ? text : null;
}

function onScale(text, values) {
  return /^\d+(\.\d+)?$/.test(text) && values.includes(Number(text)) ? Number(text) : null;
}

// Write a setting as a fragment that `readFragment` reads back.
export function writeFragment(setting) {
  const { world, protocol, policies, budget, threshold, close } = setting;
  const said = { world, protocol, policies: policies.join(","), budget, threshold };
  if (!close) said.close = "no";
  const pairs = Object.entries(said).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `#${pairs.join("&").replaceAll("%2C", ",")}`;
}
