// The plane of the front page: budget across, threshold up, the colour what probing by score gains.
//
// A classic script, after live.js. The cells were computed when the book was made; where the reader stands,
// the page's engine runs (see live.js), and the numbers and the episode beside the plane follow. It makes
// `EnvProbe.planeLegend(full, ahead)`: {root, behind}, with words for both sides of the colours' scale.
(() => {
  "use strict";

  const { engine, bar, live, estimates, front, plot: makePlot, dom: { element, say } } = globalThis.EnvProbe;
  const REST = 300; // milliseconds without a move, after which the typical episode is looked for
  const THUMB = 16; // pixels, as in bar.css: half of it stands beyond the first and last cell

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

  // The colours' scale and the marks, inside the picture; over its ground, so that they are true in light and dark.
  function legendOf(full, ahead = "score better") {
    const bar = element("div", { class: "live-plane-scale", "aria-hidden": "true" },
      element("span", { class: "live-plane-behind" }), element("span", { class: "live-plane-ramp" }), element("span", {}, ahead));
    const ends = element("div", { class: "live-plane-ends", "aria-hidden": "true" }, ...[`−${full}`, "0", `+${full} points`].map((text) => element("span", {}, text)));
    bar.children[1].append(ends);
    const keys = [["here", "you are here"], ["cross", "the paper’s setting"], ["open", "not clearly apart"], ["same", "the threshold changes nothing"]];
    const marks = keys.map(([kind, text]) => element("span", { class: "live-plane-key" }, element("i", { class: `live-plane-${kind}` }), text));
    return { root: element("div", { class: "live-plane-legend" }, bar, element("div", { class: "live-plane-keys" }, ...marks)), behind: bar.firstChild };
  }

  const BEHIND = { periodic: "schedule better", late: "end better" };

  // The headline's numbers at all cells: at these nothing is to be run.
  function recall({ headline, budgets, thresholds, cells, against }) {
    const state = headline && live.figures[headline];
    if (!state) return;
    const { figure } = state, { rows, setting } = figure, own = bar.budgetOf({ ...setting, budget: null }), [rule] = Object.keys(against);
    const names = rows.map((row) => row.value.arms[0].protocol);
    for (const [at, threshold] of thresholds.entries()) {
      for (const [place, budget] of budgets.entries()) {
        const found = names.map((name) => cells[rule][name][at][place]).map(([value, low, high]) => ({ value, low, high }));
        estimates.remember(rows.map((row) => row.value), { ...setting, threshold, budget: budget === own ? null : budget }, figure, found);
      }
    }
  }

  // The question before the third rule: who has guessed sees it in the plane, and is told at any setting.
  function guessing(root, other, choose) {
    const form = root.querySelector("form.guess");
    if (!form) return void root.querySelector(".live-plane-body").prepend(other);
    const details = form.querySelector("details"), truth = root.querySelector(".live-guess-right"), statusOf = () => form.querySelector("[role='status']");
    const texts = [...form.querySelectorAll("label")].map((label) => label.textContent.trim());
    const place = () => [...form.querySelectorAll("input")].findIndex((input) => input.checked);

    function judge() {
      const own = place();
      if (own < 0) return;
      const right = truth.textContent;
      say(statusOf(), `You said: ${texts[own].replace(/^./, (letter) => letter.toLowerCase())}. ${right === "" ? "As written no rule is clearly first here." : right === String(own) ? "As written, so it is." : "As written, it is not so."}`);
    }

    function reveal() {
      form.classList.add("live-guessed");
      details.querySelector("summary").hidden = true;
      form.after(other);
      judge();
    }

    new MutationObserver(judge).observe(truth, { childList: true, characterData: true, subtree: true });
    form.addEventListener("change", (event) => {
      if (!event.target.name.startsWith("guess-")) return;
      reveal();
      choose("late");
    });
    const recalled = () => (place() >= 0 || root.dataset.against !== "periodic") && reveal();
    document.addEventListener("DOMContentLoaded", recalled); // guess.js has then set what is kept
    if (document.readyState === "complete") recalled();
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
      onplaced: ({ svg, from, to, top, bottom }) => align(svg, from, to, top, bottom),
      onmove: ({ x, y }) => bar.move({ budget: Math.round(x), threshold: Math.round(y * 20) / 20 }),
    };
    const picture = makePlot(figure), legend = legendOf(plane.full);
    const frame = element("div", { class: "live-plane-frame" }, legend.root, vertical, picture.root, horizontal);
    recall(plane);
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
      const { seed, value, of } = await front.typical(setting, against);
      const played = await Promise.all(["simple", against].map((policy) =>
        engine.play(estimates.conditionOf({ policy }, setting.world, setting), seed)));
      if (own !== asked) return;
      const apart = value === 0 ? "both rules end level" : `asking by score ends ${makePlot.number(100 * Math.abs(value), 1)} points ${value > 0 ? "ahead" : "behind"}`;
      const said = `An ordinary episode on tools, seed ${seed}: ${apart}. Of ${of} half lie above, half below.`;
      episode.replaceChildren(
        squares("By score", deedsOf(played[0])), squares(against === "periodic" ? "By the clock" : "At the end", deedsOf(played[1])),
        element("p", {}, said, " ", element("a", { href: front.watch(setting, seed, against) }, "Watch it.")),
      );
    }

    // Sliders beside the plane have its scale: a thumb stands where its row or column is.
    function align(svg, from, to, top, bottom) {
      const own = svg.getBoundingClientRect(), around = frame.getBoundingClientRect();
      if (own.width === 0) return;
      const [left, above] = [own.left - around.left, own.top - around.top];
      Object.assign(horizontal.style, { left: `${left + from - THUMB / 2}px`, width: `${to - from + THUMB}px` });
      Object.assign(vertical.style, { top: `${above + top - THUMB / 2}px`, height: `${bottom - top + THUMB}px` });
    }

    function choose(what, name) {
      chosen[what] = root.dataset[what] = name;
      say(legend.behind, BEHIND[chosen.against] ?? "worse");
      place();
      const url = new URL(location.href), own = what === "protocol" ? plane.titles : plane.against;
      if (name === Object.keys(own)[0]) url.searchParams.delete(what);
      else url.searchParams.set(what, name);
      try { history.replaceState(history.state, "", url.href); } catch { /* a page in a frame */ }
    }

    root.querySelector(".live-static").replaceWith(toggle("protocol", "The experiment", plane.titles, chosen.protocol, (name) => choose("protocol", name)), frame);
    const other = toggle("against", "The picture compares asking by score with", plane.against, chosen.against, (name) => choose("against", name));
    guessing(root, other, (name) => {
      other.querySelector(`input[value="${name}"]`).checked = true;
      choose("against", name);
    });
    bar.follow(place);
    root.querySelectorAll(".live-keeps-place, .live-plane-lead").forEach(front.reserve);
    root.dataset.against = chosen.against;
    choose("protocol", chosen.protocol);
  }

  globalThis.EnvProbe.planeLegend = legendOf;
  if (engine?.available() && live) document.querySelectorAll(".live-plane").forEach(attach);
})();
