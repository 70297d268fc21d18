// The paper's claims, judged again on the reader's seeds (see other_seeds.py): the episodes are run in the page,
// resampled by the core's own bootstrap, and each verdict is the first case that fits.
//
// A classic script, after the front end of live figures. What was found also stands in `root.dataset.found`.
(() => {
  "use strict";

  const { engine, estimates, statistics, plot, dom: { element } } = globalThis.EnvProbe;
  const SEEDS = /^\s*(\d{1,9}):(\d{1,9})\s*$/, MOST = 2000; // episodes of a condition
  const SLICE = 12; // milliseconds of arithmetic before the page may breathe
  const keyOf = (arm, world, protocol) => JSON.stringify([arm, world, protocol]);
  const sum = (values) => values.reduce((all, one) => all + one, 0);

  // The sums of a comparison by unit, a seed in a world: numerators, denominators, and each one's place.
  function sampleOf(claim, { measure, arms, reference }, columns) {
    const top = [], bottom = [], places = [], pooled = claim.kind === "rate" && measure.split("/");
    claim.worlds.forEach((world, place) => {
      const own = [...arms, ...(reference ? [reference] : [])].map((arm) => columns(arm, world));
      const values = (text) => own.map((one) => estimates.measured(text, one));
      const [above, below] = pooled ? pooled.map(values) : [values(measure), null];
      const minus = reference && !pooled ? above.pop() : null;
      for (let unit = 0; unit < above[0].length; unit++) {
        const each = above.map((one) => one[unit] - (minus ? minus[unit] : 0)), known = each.filter((one) => !Number.isNaN(one));
        top.push(sum(known));
        bottom.push(below ? sum(below.map((one) => one[unit])) : known.length);
        places.push(place);
      }
    });
    return { top, bottom, places };
  }

  // The chance of so many or fewer among n, each with a chance of its own.
  function atMost(count, n, chance) {
    let term = (1 - chance) ** n, all = 0;
    for (let k = 0; k <= count; k++) {
      all += term;
      term *= ((n - k) / (k + 1)) * (chance / (1 - chance));
    }
    return Math.min(1, all);
  }

  // Of levels of a yes-or-no measure with one value in every unit: the exact ends, since nothing can be resampled.
  function flat(claim, comparison, { top, bottom }, tail) {
    if (comparison.reference || !comparison.yesOrNo) return null;
    const none = top.every((one) => one === 0), whole = top.every((one, unit) => one === bottom[unit]);
    if (!none && !whole) return null;
    const end = tail ** (1 / sum(bottom)), [low, high] = whole ? [end, 1] : [0, 1 - end];
    return { low: claim.scale * low, high: claim.scale * high };
  }

  function decide(claim, comparison, columns, data) {
    const { top, bottom, places } = sampleOf(claim, comparison, columns), contrasted = claim.kind === "contrast";
    const groups = contrasted ? [(place) => place < claim.first, (place) => place >= claim.first] : [() => true];
    const among = (values, isIn) => Float64Array.from(values, (one, unit) => (isIn(places[unit]) ? one : 0));
    const tops = groups.map((isIn) => among(top.map((one) => claim.scale * one), isIn)), bottoms = groups.map((isIn) => among(bottom, isIn));
    if (bottoms.some((own) => own.filter((one) => one !== 0).length < data.least)) return { verdict: data.untested };
    const { resamples, level } = data, { family } = claim, reach = comparison.reach ?? NaN; // JSON has no NaN
    const [found] = statistics.ratios(tops, bottoms, { strata: places, resamples, contrasted, family, reach });
    const { low, high } = flat(claim, comparison, { top, bottom }, (1 - level) / family / 2) ?? { low: found.lowAdjusted, high: found.highAdjusted };
    const won = top.filter((one) => one > 0).length, lost = top.filter((one) => one < 0).length;
    let isClaimed = null, isSure = true;
    if (claim.kind === "mcnemar") {
      isSure = claim.family * 2 * atMost(Math.min(won, lost), won + lost, 0.5) < 1 - level; // McNemar's exact p
      isClaimed = comparison.direction === "either" || won > lost === (comparison.direction === "greater");
    }
    const isByP = ({ side }) => isClaimed === null || side === 0 || (isSure && isClaimed === side > 0);
    const same = top.every((one) => one === 0);
    const fits = (one) => (one.same ? same : low >= (one.low ?? -Infinity) && high <= (one.high ?? Infinity) && isByP(one));
    const { verdict, side } = comparison.cases.find(fits) ?? { verdict: data.open, side: 0 };
    const isAlike = comparison.reference && comparison.yesOrNo && atMost(won + lost, sum(bottom), data.hardly) < (1 - level) / 2; // so few pairs differ
    return { verdict: isAlike && side === 0 ? data.alike : verdict, value: found.value, low, high };
  }

  // What verdicts of comparisons make of a claim of them all.
  function combined(verdicts, data) {
    const fits = ({ some, every }) => (!some.length || verdicts.some((one) => some.includes(one))) && (!every.length || verdicts.every((one) => every.includes(one)));
    return data.several.find(fits)?.verdict ?? data.open;
  }

  function judged(claim, protocol, columns, data) {
    const found = claim.comparisons.map((one) => decide(claim, one, (arm, world) => columns.get(keyOf(arm, world, protocol)), data));
    const verdict = found.length > 1 ? combined(found.map((one) => one.verdict), data) : found[0].verdict;
    return { verdict: claim.words[verdict] ?? verdict, ...(found.length > 1 ? {} : { value: found[0].value, low: found[0].low, high: found[0].high }) };
  }

  async function judgeAll(data, seeds, signal, onprogress) {
    const wanted = new Map();
    for (const { worlds, comparisons } of data.claims) {
      for (const { arms, reference } of comparisons) {
        for (const arm of [...arms, ...(reference ? [reference] : [])]) {
          for (const world of worlds) {
            for (const protocol of Object.keys(data.protocols)) {
              const condition = estimates.conditionOf({ ...arm, protocol }, world, { regime: data.regime, profile: data.profile });
              wanted.set(keyOf(arm, world, protocol), condition);
            }
          }
        }
      }
    }
    const conditions = [...wanted.values()];
    const ran = await engine.run(conditions, seeds, { signal, onprogress: ({ share }) => onprogress(share / 2) });
    await statistics.ready();
    const columns = new Map([...wanted.keys()].map((key, at) => [key, { ...ran[at], ...estimates.constants(conditions[at]) }]));
    const found = {};
    let begun = performance.now();
    for (const [at, claim] of data.claims.entries()) {
      found[claim.id] = {};
      for (const protocol of Object.keys(data.protocols)) {
        found[claim.id][protocol] = judged(claim, protocol, columns, data);
        if (performance.now() - begun < SLICE) continue;
        onprogress(0.5 + at / data.claims.length / 2);
        await engine.breath();
        if (signal.aborted) throw engine.overtaken();
        begun = performance.now();
      }
    }
    return { found, episodes: sum(ran.map(({ digest }) => digest.length)) };
  }

  function attach(root) {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const [seeds, start, cancel, bar, said, shown] = ["input", "[data-run-here]", ".other-seeds-cancel", "progress", ".other-seeds-said", ".other-seeds-found"].map((one) => root.querySelector(one));
    const many = (count, one) => `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`;
    let overtaken = null;

    const number = (value, { unit, signed }) => `${signed && value > 0 ? "+" : ""}${plot.number(value, data.digits[unit])}`;
    const mark = (verdict) => {
      const told = element("span");
      told.innerHTML = data.marks[verdict]; // the book's own
      return told;
    };
    function told({ verdict, value, low, high }, claim) {
      if (!Number.isFinite(value)) return [mark(verdict)];
      const ends = [low, high].map((one) => plot.number(one, data.digits[claim.unit])).join(", ");
      return [mark(verdict), element("br"), `${number(value, claim)} `, element("small", {}, `[${ends}]`)];
    }
    const printed = ([verdict, value, low, high], claim) => told({ verdict, value: claim.comparisons.length > 1 ? NaN : value ?? NaN, low, high }, claim);

    function show(found) {
      const rows = data.claims.flatMap((claim) => Object.entries(data.protocols).flatMap(([protocol, title]) => {
        const before = data.book[claim.id][protocol], after = found[claim.id][protocol];
        return before[0] === after.verdict ? [] : [[claim, title, printed(before, claim), told(after, claim)]];
      }));
      const body = rows.map(([claim, title, before, after]) => element("tr", {},
        element("th", { scope: "row" }, element("a", { href: `executed/scoreboard.html#claim-${claim.id}` }, claim.statement)),
        element("td", {}, title), element("td", {}, ...before), element("td", {}, ...after)));
      const heads = ["Claim", "Protocol", "In the book", "On your seeds"].map((title) => element("th", { scope: "col" }, title));
      const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body));
      shown.replaceChildren(...(rows.length ? [element("div", { class: "scoreboard", role: "region", tabindex: "0", "aria-label": "Verdicts that change" }, table)] : []));
      return rows;
    }

    function sidesTurned(rows, found) {
      return rows.filter(([claim, title]) => {
        const protocol = Object.keys(data.protocols).find((name) => data.protocols[name] === title);
        return data.sides[data.book[claim.id][protocol][0]] * data.sides[found[claim.id][protocol].verdict] === -1;
      }).length;
    }

    async function judge() {
      const [, first, past] = (SEEDS.exec(seeds.value) ?? []).map(Number);
      if (!(past - first >= data.least && past - first <= MOST)) {
        said.textContent = `“${seeds.value.slice(0, 40)}” is no range of seeds: first:past, ${data.least} to ${MOST.toLocaleString("en-US")} of them, is accepted, as 1000:1220.`;
        seeds.focus();
        return;
      }
      overtaken = new AbortController();
      start.disabled = true;
      cancel.hidden = bar.hidden = false;
      delete root.dataset.found;
      shown.replaceChildren();
      said.textContent = "Running.";
      const begun = performance.now();
      try {
        const { found, episodes } = await judgeAll(data, `${first}:${past}`, overtaken.signal, (share) => (bar.value = share));
        const rows = show(found), turned = sidesTurned(rows, found), all = data.claims.length * Object.keys(data.protocols).length;
        const seconds = ((performance.now() - begun) / 1000).toFixed(1);
        const sides = turned ? `${turned === 1 ? "One of them goes" : `${turned} of them go`} over to the other side.` : "None of them goes over to the other side.";
        said.textContent = `Seeds ${first}:${past}, ${many(episodes, "episode")} in ${seconds} seconds: ${rows.length} of ${all} verdicts ${rows.length === 1 ? "changes" : "change"}. ${rows.length ? sides : ""}`.trim();
        root.dataset.found = JSON.stringify(found);
      } catch (error) {
        said.textContent = error.name === "AbortError" ? "Cancelled; nothing was judged." : String(error.message || error);
      }
      cancel.hidden = bar.hidden = true;
      start.disabled = false;
      if (document.activeElement === document.body) start.focus();
    }

    start.addEventListener("click", judge);
    seeds.addEventListener("keydown", (event) => event.key === "Enter" && !start.disabled && judge());
    cancel.addEventListener("click", () => overtaken?.abort());
    start.hidden = !engine?.available();
  }

  if (engine) document.querySelectorAll(".other-seeds").forEach(attach);
})();
