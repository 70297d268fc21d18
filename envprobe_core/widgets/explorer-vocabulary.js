// The names behind a setting, with what the front end looks up in them all the time.

const LONGEST = 16; // characters of a name beside a mark

// The page's vocabulary, with `policy(name)`, `world(name)` and `protocol(name)`; a policy has a short name.
export function openVocabulary(given) {
  const policies = given.policies.map((policy) => ({ ...policy, short: shorten(policy.title) }));
  return {
    ...given,
    policies,
    policy: lookup(policies),
    world: lookup(given.worlds),
    protocol: lookup(given.protocols),
  };
}

function lookup(items) {
  const byName = new Map(items.map((item) => [item.name, item]));
  return (name) => byName.get(name);
}

function shorten(title) {
  const short = title.replace(/^EnvProbe-|^Simple (?=without)/, "");
  return short.length > LONGEST ? `${short.slice(0, LONGEST - 1)}…` : short;
}

// Join names as a sentence does.
export function listed(names) {
  return names.length < 2 ? (names[0] ?? "none") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
