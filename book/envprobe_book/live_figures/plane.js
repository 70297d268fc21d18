// The plane of the front page: budget across, threshold up, the colour what probing by score gains.
//
// A classic script, after live.js. The cells were computed when the book was made; where the reader stands,
// the page's engine runs (see live.js), and the numbers and the episode beside the plane follow.
(() => {
  "use strict";

  const { engine, bar, live, estimates, plot: makePlot, dom: { element } } = globalThis.EnvProbe;
  const REST = 300; // milliseconds without a move, after which the typical episode is looked for
  const SEEDS = "0:220";

  function rowsOf({ budgets, thresholds }, cells) {
    return thresholds.flatMap((y, at) => budgets.map((x, place) => {
      const [value, low, high] = cells[at][place];
      return { x, y, value, low, high };
    }));
  }

  // Radio buttons, one a protocol or a rule to compare with; what is said of the others is hidden. The choice stands
  // in the address.
  function toggle(what, legend, titles, chosen, onSet) {
    const buttons = Object.entries(titles).map(([name, title]) => {
      const input = element("input", { type: "radio", name: `live-plane-${what}`, value: name });
      input.checked = name === chosen;
      input.addEventListener("change", () => onSet(name));
      return element("label", {}, input, ` ${title}`);
    });
    return element("fieldset", { class: "live-plane-protocols" }, element("legend", {}, legend), ...buttons);
  }

  function slider(knob, name, most, step, orient) {
    const input = element("input", { type: "range", min: 0, max: most, step, "aria-label": name, "data-knob": knob, class: `live-plane-${orient}` });
    input.addEventListener("input", () => bar.move({ [knob]: Number(input.value) }));
    return input;
  }

  // The seed whose paired difference is the median one, and how the differences lie around it.
  async function typical(condition, against) {
    const [one, other] = await engine.run(["simple", against].map((policy) => estimates.conditionOf({ policy }, condition.world, condition)), SEEDS);
    const differences = [...one.accuracy].map((value, seed) => [value - other.accuracy[seed], seed]);
    differences.sort(([a, s], [b, t]) => a - b || s - t);
    const [value, seed] = differences[Math.floor((differences.length - 1) / 2)];
    return { seed, value, of: differences.length };
  }

  const DEEDS = { probe: "asks", act: "acts", fail: "an action that fails", wait: "waits" };

  function deedsOf({ logs, steps }) {
    const { none, wait } = engine.names();
    return Array.from({ length: steps[0] }, (_, t) => {
      if (logs.probe.values[t] !== none) return "probe";
      if (logs.action.values[t] === wait) return "wait";
      return logs.valid.values[t] ? "act" : "fail";
    });
  }

  function squares(name, deeds) {
    const row = deeds.map((deed, t) => element("span", { class: `live-step live-${deed}`, title: `step ${t}: ${DEEDS[deed]}` }));
    const told = deeds.map((deed, t) => (deed === "probe" ? t : -1)).filter((t) => t >= 0);
    const said = told.length ? `asks at steps ${told.join(", ")}` : "never asks";
    return element("div", { class: "live-steps", role: "img", "aria-label": `${name} ${said}` }, element("span", { class: "live-steps-name" }, name), ...row);
  }

  // Where the player shows this episode.
  function watch({ world, protocol, regime, profile, threshold, ...rest }, seed, against) {
    const said = { episode: `${world}-${protocol}-${seed}`, policies: `simple ${against}`, regime, profile, budget: bar.budgetOf({ regime, ...rest }), threshold };
    return `executed/one-episode.html#${new URLSearchParams(said)}`;
  }

  function attach(root) {
    const plane = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const [horizontal, vertical] = [
      slider("budget", "Budget", plane.budgets.at(-1), 1, "across"),
      slider("threshold", "Threshold", plane.thresholds.at(-1), 0.05, "up"),
    ];
    const figure = {
      name: "plane", kind: "plane", title: "", label: "points of accuracy ahead", across: "budget", up: "threshold",
      line: 0, limits: null, columns: 1, digits: 1, series: {}, mark: plane.mark,
      about: "Gain of EnvProbe-Simple over another rule by budget and threshold",
      onmove: ({ x, y }) => bar.move({ budget: Math.round(x), threshold: Math.round(y * 20) / 20 }),
    };
    const picture = makePlot(figure);
    const asks = new URL(location.href).searchParams, among = (name, known) => (Object.hasOwn(known, asks.get(name)) ? asks.get(name) : Object.keys(known)[0]);
    const chosen = { protocol: among("protocol", plane.titles), against: among("against", plane.against) };
    let timer = 0, asked = 0;
    const episode = root.querySelector(".live-episode");

    function place() {
      const setting = bar.setting(), x = bar.budgetOf(setting), y = setting.threshold;
      horizontal.value = x;
      vertical.value = y;
      picture.update(rowsOf(plane, plane.cells[chosen.against][chosen.protocol]), null, { at: { x, y } });
      clearTimeout(timer);
      timer = setTimeout(showEpisode, REST);
    }

    async function showEpisode() {
      if (!episode) return;
      asked += 1;
      const { against, protocol } = chosen, own = asked, setting = { ...bar.setting(), world: "tooldag", protocol };
      const { seed, value, of } = await typical(setting, against);
      const played = await Promise.all(["simple", against].map((policy) =>
        engine.play(estimates.conditionOf({ policy }, setting.world, setting), seed)));
      if (own !== asked) return;
      const points = makePlot.number(100 * value, 1);
      const said = `A typical episode on tools: seed ${seed}, whose difference (${points} points) is the median of ${of}.`;
      episode.replaceChildren(
        squares("By score", deedsOf(played[0])), squares(against === "periodic" ? "By the clock" : "At the end", deedsOf(played[1])),
        element("p", {}, said, " ", element("a", { href: watch(setting, seed, against) }, "Watch it.")),
      );
    }

    function choose(what, name) {
      chosen[what] = root.dataset[what] = name;
      place();
      const url = new URL(location.href), own = what === "protocol" ? plane.titles : plane.against;
      if (name === Object.keys(own)[0]) url.searchParams.delete(what);
      else url.searchParams.set(what, name);
      try { history.replaceState(history.state, "", url.href); } catch { /* a page in a frame */ }
    }

    const frame = element("div", { class: "live-plane-frame" }, vertical, picture.root, horizontal);
    root.querySelector(".live-static").replaceWith(
      toggle("protocol", "The experiment", plane.titles, chosen.protocol, (name) => choose("protocol", name)),
      toggle("against", "Asking by score, compared with", plane.against, chosen.against, (name) => choose("against", name)), frame,
    );
    bar.follow(place);
    root.dataset.against = chosen.against;
    choose("protocol", chosen.protocol);
  }

  if (engine?.available() && live) document.querySelectorAll(".live-plane").forEach(attach);
})();
