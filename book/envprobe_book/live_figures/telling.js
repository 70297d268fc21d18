// Telling: what the slots of sentences say, by where intervals lie. As `words.py` beside this file.
//
// A classic script, after draw.js. It makes
//
//   EnvProbe.telling(slot, found, isRough)   the words of a slot's data: `found` has {value, low, high} of each
//                                            of its readings; where they are rough, numbers wear `≈`
//   EnvProbe.telling.number(value, digits, {signed, isRough})
//                                            a number as sentences write it
(() => {
  "use strict";

  const { plot } = globalThis.EnvProbe;
  const PLACES = "+-0~=?", REST = "*";

  function place(found, { base = 0, within = 0 }) {
    const low = found.low - base, high = found.high - base;
    if (![found.value, found.low, found.high].every(Number.isFinite)) return "?";
    if (low === 0 && high === 0) return "=";
    if (-within < low && high < within) return "~";
    return low > 0 ? "+" : high < 0 ? "-" : "0";
  }

  function number(value, digits, { signed = false, isRough = false } = {}) {
    const text = plot.number(value, digits).replace(/\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
    const full = signed && value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
    return isRough && /\d/.test(full) ? `≈${full}` : full;
  }

  const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);
  const inUnits = (text, unit) => text.replace(/(\S+) \{unit\}/g, (_, n) => `${n} ${unit}${n === "1" ? "" : "s"}`);

  function fits(one, places) {
    const [how, which] = one.split(" ");
    if (how === "every") return places.every((own) => own === which);
    if (how === "some" || how === "no") return places.includes(which) === (how === "some");
    if (one === "both") return places.includes("+") && places.includes("-");
    return one === REST || (one.length === places.length && places.every((own, at) => one[at] === "." || one[at] === own));
  }

  function filled(text, found, { digits, base = 0, unit = "" }, isRough) {
    const parts = text.replace(/\{(?:(\d)\.)?(n|v|low|high)\}/g, (_, at, part) => {
      const own = found[Number(at ?? 0)], off = own.value - base;
      if (part === "v") return number(off, digits, { signed: true, isRough });
      if (part !== "n") return number(own[part] - base, digits, { isRough });
      const shown = number(Math.abs(off), digits, { isRough });
      return off === 0 || /[1-9–]/.test(shown) ? shown : `less than ${plot.number(10 ** -digits, digits)}`;
    });
    return inUnits(parts, unit);
  }

  function ranks(found, { names, digits, top }, isRough) {
    const rows = new Map(), known = found.map((own, at) => [own.value, names[at]]).filter(([value]) => Number.isFinite(value));
    for (const [value, name] of known.sort(([a], [b]) => b - a)) {
      const text = number(value, digits, { isRough });
      rows.set(text, [...(rows.get(text) ?? []), name]);
    }
    return [...rows].slice(0, top || undefined).map(([text, own]) => `${listed(own)} (${text})`).join(", then ") || "not known";
  }

  function groups(found, places, slot, isRough) {
    return [...PLACES].flatMap((one) => {
      const here = places.flatMap((own, at) => (own === one ? [at] : []));
      if (!here.length) return [];
      const names = (here.length === places.length && slot.every) || listed(here.map((at) => slot.names[at]));
      return filled((slot.say[one] ?? slot.say[REST] ?? "").replaceAll("{names}", names), here.map((at) => found[at]), slot, isRough);
    }).join(", ");
  }

  // Words before their names, those that are the same once; `<...>` is said in the first clause alone.
  function clauses(words, names) {
    /** @type {Map<string, string[]>} */
    const saidOf = new Map();
    words.forEach((text, at) => {
      const [stem, ...rest] = text.split(" (");
      saidOf.set(stem, [...(saidOf.get(stem) ?? []), [names[at], ...rest].join(" (")]);
    });
    const all = [...saidOf].map(([stem, own], at) => `${stem.replace(at ? /<[^>]*>/g : /[<>]/g, "")} ${listed(own)}`);
    return all.length > 1 && all.length < words.length ? `${all.slice(0, -1).join(", ")}, and ${all.at(-1)}` : listed(all);
  }

  function telling(slot, read, isRough = false) {
    const scale = slot.scale ?? 1;
    const found = read.map(({ value, low, high }) => ({ value: scale * value, low: scale * low, high: scale * high }));
    const places = found.map((own) => place(own, slot));
    if (slot.kind === "counts") {
      const n = places.filter((own) => own in slot.say).length;
      return `${isRough ? "≈" : ""}${n === places.length ? `all ${n}` : `${n || "none"} of ${places.length}`}`;
    }
    if (slot.kind === "ranks") return ranks(found, slot, isRough);
    if (slot.kind === "groups") return groups(found, places, slot, isRough);
    const wordsOf = (own) => Object.entries(slot.say).find(([one]) => fits(one, own))?.[1] ?? "";
    if (slot.kind === "each") return clauses(found.map((own, at) => filled(wordsOf([places[at]]), [own], slot, isRough)), slot.names);
    return filled(wordsOf(places), found, slot, isRough);
  }

  Object.assign(telling, { number, inUnits });
  globalThis.EnvProbe.telling = telling;
})();
