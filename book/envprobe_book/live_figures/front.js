// The front page's sentences under the reader's hand: settings that are dragged in the text, room for the longest
// wording, and the abstract's chips.
//
// A classic script, after live.js. It makes `EnvProbe.front`:
//
//   typical(condition, against, arm)
//                                the seed whose paired difference is the median one: {seed, value, of}
//   watch(condition, seed, against, arm)
//                                where the player shows it
//   hold(span)                   puts a slot of kind `handle` under the reader's hand
//   reserve(paragraph)           gives a paragraph the height of its longest wording, at any width
(() => {
  "use strict";

  const { engine, bar, live, estimates, telling, dom: { element, KEEPS_KEYS } } = globalThis.EnvProbe;
  const SEEDS = "0:220";
  const REST = 350; // milliseconds without a move, after which a typical episode is looked for
  const PIXELS = 14; // of a drag, for one step
  const LEAP = 4; // steps, with the keys of a page
  const NAMES = { budget: "Looks that an episode may spend", threshold: "The score at which it looks" };

  // settings in a sentence

  function hold(span) {
    if (span.role) return; // it is already
    const slot = JSON.parse(span.dataset.told), { knob, most, step } = slot;
    const now = () => (knob === "budget" ? bar.budgetOf(bar.setting()) : bar.setting()[knob]);
    const snapped = (value) => Math.min(most, Math.max(0, Math.round(value / step) * step));
    let from = null;

    function move(value) {
      bar.move({ [knob]: Math.min(most, Math.max(0, Math.round(value * 100) / 100)) });
    }

    function show() {
      const text = telling.number(now(), slot.digits), words = slot.unit ? telling.inUnits(`${text} {unit}`, slot.unit) : text;
      if (span.textContent !== words) span.textContent = words;
      span.setAttribute("aria-valuenow", now());
      span.setAttribute("aria-valuetext", words);
    }

    span.classList.add("live-handle");
    const { nextSibling: behind } = span;
    if (behind instanceof Text && /^[.,;:)]/.test(behind.data)) { // no line begins with what ends a clause
      const whole = element("span", { style: "white-space: nowrap" });
      span.replaceWith(whole);
      whole.append(span, behind.data[0]);
      behind.data = behind.data.slice(1);
    }
    span.textContent = slot.unit ? `${most} ${slot.unit}s` : telling.number(most, slot.digits);
    span.style.minWidth = `${(span.getBoundingClientRect().width / parseFloat(getComputedStyle(span).fontSize)).toFixed(3)}em`; // what stands behind it never moves
    const attributes = { role: "slider", tabindex: 0, "aria-label": NAMES[knob] ?? knob, "aria-valuemin": 0, "aria-valuemax": most, title: "Drag, or use the arrow keys", ...KEEPS_KEYS };
    for (const [name, value] of Object.entries(attributes)) span.setAttribute(name, value);

    span.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      from = { x: event.clientX, value: now() };
      span.setPointerCapture(event.pointerId);
      span.focus({ preventScroll: true });
      span.classList.add("live-held");
      event.preventDefault(); // no text is chosen
    });
    span.addEventListener("pointermove", (event) => {
      const steps = from && Math.round((event.clientX - from.x) / PIXELS);
      if (from && steps !== from.steps) move(steps === 0 ? from.value : snapped(from.value + steps * step));
      if (from) from.steps = steps;
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      span.addEventListener(end, () => {
        from = null;
        span.classList.remove("live-held");
      });
    }
    span.addEventListener("keydown", (event) => {
      const near = 1e-9, value = now();
      const up = (Math.floor(value / step + near) + 1) * step, down = (Math.ceil(value / step - near) - 1) * step;
      const to = { ArrowRight: up, ArrowUp: up, ArrowLeft: down, ArrowDown: down, PageUp: value + LEAP * step, PageDown: value - LEAP * step, Home: 0, End: most }[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      move(to);
    });
    bar.follow(show);
    show();
  }

  // Room for the longest wording: what follows a sentence stays where it is, whatever the sentence says.

  const LIKELY = [[18.8, 18.1, 19.4], [-18.8, -19.4, -18.1], [-0.8, -1.8, 0.8], [0.2, -0.3, 0.4], [0, 0, 0]];

  function longest(slot, shown) {
    if (slot.kind === "handle") return shown;
    if (slot.kind === "knob") return slot.unit ? `15 ${slot.unit}s` : telling.number(15, slot.digits);
    const texts = LIKELY.map(([value, low, high]) => telling(slot, slot.of.map(() => ({ value: value + (slot.base ?? 0), low: low + (slot.base ?? 0), high: high + (slot.base ?? 0) })), true));
    return [...texts, ...(slot.of.length > 1 ? Object.values(slot.say) : [])].reduce((one, other) => (other.length > one.length ? other : one), shown);
  }

  function reserve(paragraph) {
    let width = 0;
    const measure = () => {
      if (paragraph.clientWidth === width || paragraph.clientWidth === 0) return;
      width = paragraph.clientWidth;
      const copy = /** @type {HTMLElement} */ (paragraph.cloneNode(true));
      /** @type {NodeListOf<HTMLElement>} */ (copy.querySelectorAll("[data-told]")).forEach((span) => {
        span.textContent = longest(JSON.parse(span.dataset.told), span.textContent);
      });
      Object.assign(copy.style, { position: "absolute", visibility: "hidden", width: `${width}px`, minHeight: "0" });
      copy.setAttribute("aria-hidden", "true");
      paragraph.after(copy);
      const height = Math.ceil(copy.getBoundingClientRect().height);
      copy.remove();
      paragraph.style.minHeight = `${height}px`;
    };
    new ResizeObserver(measure).observe(paragraph);
    measure();
  }

  // a typical episode

  async function typical(condition, against, arm = "simple") {
    const [one, other] = await engine.run([arm, against].map((policy) => estimates.conditionOf({ policy }, condition.world, condition)), SEEDS, { patient: true });
    const differences = [...one.accuracy].map((value, seed) => [value - other.accuracy[seed], seed]);
    differences.sort(([a, s], [b, t]) => a - b || s - t);
    const [value, seed] = differences[Math.floor((differences.length - 1) / 2)];
    return { seed, value, of: differences.length };
  }

  function watch({ world, protocol, regime, profile, threshold, ...rest }, seed, against, arm = "simple") {
    const said = { episode: `${world}-${protocol}-${seed}`, policies: `${arm} ${against}`, regime, profile, budget: bar.budgetOf({ regime, ...rest }), threshold };
    return `executed/one-episode.html#${new URLSearchParams(said)}`;
  }

  // the abstract

  function abstract(root) {
    const chips = [...root.querySelectorAll(".live-chip")];
    const panelOf = (chip) => document.getElementById(chip.getAttribute("aria-controls"));
    let timer = 0, asked = 0;

    // The link to an episode is made for where the reader is, once a claim is open and the bar at rest.
    function findEpisode() {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const chip = chips.find((one) => one.getAttribute("aria-expanded") === "true"), own = (asked += 1);
        if (!chip) return;
        const plane = /** @type {HTMLElement | null} */ (document.querySelector(".live-plane"));
        const panel = panelOf(chip), protocol = plane?.dataset.protocol ?? "paper";
        const setting = { ...bar.setting(), world: panel.dataset.world, protocol };
        const [arm, against] = panel.dataset.arms.split(" ");
        const { seed } = await typical(setting, against, arm);
        const link = /** @type {HTMLAnchorElement} */ (panel.querySelector(".live-claim-episode"));
        if (own === asked) link.href = watch(setting, seed, against, arm);
      }, REST);
    }

    function open(chosen) {
      for (const chip of chips) {
        const isOpen = chip === chosen;
        chip.setAttribute("aria-expanded", isOpen);
        panelOf(chip).hidden = !isOpen;
      }
      findEpisode();
    }

    for (const chip of chips) chip.addEventListener("click", () => open(chip.getAttribute("aria-expanded") === "true" ? null : chip));
    root.querySelectorAll(".live-keeps-place").forEach(reserve);
    open(chips.find((chip) => chip.getAttribute("aria-expanded") === "true"));
    bar.follow(findEpisode);
    document.querySelector(".live-plane")?.addEventListener("change", findEpisode);
  }

  globalThis.EnvProbe.front = { typical, watch, hold, reserve };
  if (engine?.available() && live) {
    /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".live-told")).forEach((span) => {
      if (JSON.parse(span.dataset.told).kind === "handle") hold(span);
    });
    document.querySelectorAll(".live-abstract").forEach(abstract);
  }
})();
