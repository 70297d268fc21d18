// Run it here: a page runs again what its section ran, and compares every digest with the printed book's.
//
// A classic script, after engine.js. Each element `.rerun` holds a list of sections as JSON: name, hash of what
// it was made from, and `packed`, the list that envprobe_book/reproduce/reruns.py writes. The digest of a cell
// is the sum of its episodes' digests, each times (2 x seed + 1), modulo 2**64.
(() => {
  "use strict";

  const SHOWN = 20; // cells that differ, named in the page; the receipt names all
  const engine = globalThis.EnvProbe?.engine;
  const number = (value) => value.toLocaleString("en-US");
  const many = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

  function condensed(digests, first) {
    let sum = 0n;
    let word = 2n * BigInt(first) + 1n;
    for (const digest of digests) {
      sum = BigInt.asUintN(64, sum + digest * word);
      word += 2n;
    }
    return sum.toString(16).padStart(16, "0");
  }

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // Run a section's list; what was found, each cell that differs with both digests.
  async function runSection(section, signal, onprogress) {
    const { conditions, runs } = await unpacked(section.packed);
    const begun = performance.now();
    const each = runs.map(([, first, past]) => `${first}:${past}`);
    const found = runs.length ? await engine.run(runs.map(([place]) => conditions[place]), { each }, { signal, onprogress }) : [];
    const digests = found.map(({ digest }, i) => condensed(digest, runs[i][1]));
    const differences = [];
    runs.forEach(([place, , , printed], i) => {
      if (digests[i] !== printed) differences.push({ condition: conditions[place], seeds: each[i], printed, here: digests[i] });
    });
    const { name, inputs_sha256, elsewhere } = section;
    const episodes = runs.reduce((sum, [, first, past]) => sum + past - first, 0);
    const seconds = (performance.now() - begun) / 1000;
    return { section: name, inputs_sha256, cells: runs.length, episodes, seconds, differ: differences.length, differences, digests, elsewhere };
  }

  function named({ condition, seeds, printed, here }) {
    const shown = Object.entries(condition).filter(([key]) => key !== "setting" && key !== "replays");
    const words = shown.map(([key, value]) => `${key} ${typeof value === "object" ? JSON.stringify(value) : value}`);
    return `${words.join(", ")}, seeds ${seeds}: printed ${printed}, here ${here}`;
  }

  const day = () => new Date().toISOString().slice(0, 10);

  function sentence({ cells, episodes, seconds, differ }) {
    const ran = `${many(cells, "condition")} and ${many(episodes, "episode")} in ${seconds.toFixed(1)} seconds`;
    if (differ === 0) return `${day()}: ${ran}. Every digest equals the printed book’s.`;
    return `${day()}: ${ran}. ${many(differ, "digest")} of ${number(cells)} ${differ === 1 ? "differs" : "differ"} from the printed book’s.`;
  }

  function attach(root) {
    const list = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const part = (name) => root.querySelector(`.rerun-${name}`);
    const start = root.querySelector("[data-run-here]");
    const [cancel, save, bar, result, faults] = ["cancel", "save", "bar", "result", "faults"].map(part);
    let overtaken = null, receipt = null;

    async function run() {
      overtaken = new AbortController();
      start.disabled = true;
      cancel.hidden = bar.hidden = false;
      if (save) save.hidden = true;
      delete result.dataset.receipt;
      faults.replaceChildren();
      result.textContent = "Running.";
      bar.value = 0;
      const total = Math.max(1, list.sections.reduce((sum, { episodes }) => sum + episodes, 0));
      const sections = [];
      let before = 0;
      try {
        for (const section of list.sections) {
          const found = await runSection(section, overtaken.signal, ({ episodes }) => {
            bar.value = (before + episodes) / total;
          });
          before += found.episodes;
          sections.push(found);
        }
        const sum = (name) => sections.reduce((all, found) => all + found[name], 0);
        const whole = { cells: sum("cells"), episodes: sum("episodes"), seconds: sum("seconds"), differ: sum("differ") };
        receipt = { book: list.version, browser: navigator.userAgent, made: new Date().toISOString(), ...whole, sections };
        const differences = sections.flatMap((found) => found.differences);
        for (const one of differences.slice(0, SHOWN)) faults.append(Object.assign(document.createElement("li"), { textContent: named(one) }));
        result.textContent = sentence(whole);
        result.dataset.receipt = JSON.stringify({ ...whole, differences });
        if (save) save.hidden = false;
      } catch (error) {
        result.textContent = error.name === "AbortError" ? "Cancelled; nothing was compared." : String(error.message || error);
      }
      cancel.hidden = bar.hidden = true;
      start.disabled = false;
      if (document.activeElement === document.body) start.focus();
    }

    start.addEventListener("click", run);
    cancel.addEventListener("click", () => overtaken?.abort());
    save?.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([JSON.stringify(receipt, null, 1)], { type: "application/json" }));
      const link = Object.assign(document.createElement("a"), { href: address, download: "envprobe-receipt.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    start.hidden = !engine;
  }

  document.querySelectorAll(".rerun").forEach(attach);
})();
