// Under the reader's hand: what a look is worth by its step, and the plane of hazard and price, how many pay.
//
// A classic script, after the page's tools. What Python computed at the points of a grid (looks.py) is looked up;
// sliders, keys and the pointer choose the point.
(() => {
  "use strict";

  const { dom: { element, shape, change, say } } = globalThis.EnvProbe;
  const CELL = 16;

  const nearest = (values, value) => values.reduce((best, one, at) => (Math.abs(one - value) < Math.abs(values[best] - value) ? at : best), 0);
  const count = (looks) => `${looks} ${looks === 1 ? "look" : "looks"}`;

  function said(data, { horizon, rate, price }) {
    const H = data.horizons[horizon], h = data.rates[rate], c = data.prices[price];
    const [looks, net, low, high] = data.cells[H][price][rate];
    const first = H - looks, paper = data.paper[H];
    const when = looks ? `${count(looks)} pay: the last ${looks === 1 ? "step" : `${looks} steps`}, from step ${first} on. They are worth ${net.toFixed(2)} fields more than they cost.` : "No look pays.";
    const wrong = `Who takes the hazard for a third of it loses ${low.toFixed(2)} fields, who takes it for three times as much ${high.toFixed(2)}.`;
    const beside = paper === undefined ? "" : ` The paper allows ${paper}.`;
    return `At a hazard of ${h} a step, a price of ${c} fields and ${H} steps, ${when.charAt(0).toLowerCase()}${when.slice(1)}${beside} ${wrong} Where steps are averaged, one look pays most at step ${data.middle[H]}, at any hazard.`;
  }

  function show(place) {
    const data = JSON.parse(place.querySelector("script").textContent);
    const { rates, prices, horizons, mark } = data;
    const at = { horizon: horizons.indexOf(mark.horizon), rate: nearest(rates, mark.rate), price: nearest(prices, mark.price) };
    const width = rates.length * CELL, height = prices.length * CELL;
    const cells = prices.map((_, y) => rates.map((_, x) => shape("rect", { x: x * CELL, y: height - (y + 1) * CELL, width: CELL, height: CELL, fill: "currentColor" })));
    const ring = shape("rect", { width: CELL, height: CELL, fill: "none", stroke: "var(--pst-color-primary, #0a7d91)", "stroke-width": 3 });
    const picture = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "looks that pay, by hazard across and price up; darker is more" }, ...cells.flat(), ring);
    const words = element("p", { role: "status", "aria-live": "polite" });
    const knobs = [["horizon", "steps", horizons], ["rate", "hazard, a step", rates], ["price", "price of a look, in fields", prices]].map(([knob, name, values]) => {
      const input = element("input", { type: "range", min: 0, max: values.length - 1, step: 1, "aria-label": name });
      const value = element("output");
      input.addEventListener("input", () => move({ [knob]: Number(input.value) }));
      return { knob, values, input, value, line: element("label", {}, `${name} `, value, input) };
    });

    function move(to) {
      Object.assign(at, to);
      const own = data.cells[horizons[at.horizon]], most = Math.max(...own.flat().map(([looks]) => looks));
      const paper = data.paper[horizons[at.horizon]];
      cells.forEach((row, y) => row.forEach((cell, x) => {
        const [looks] = own[y][x];
        change(cell, { "fill-opacity": (0.04 + (0.86 * looks) / most).toFixed(3), stroke: looks === paper ? "currentColor" : "none" });
      }));
      change(ring, { x: at.rate * CELL, y: height - (at.price + 1) * CELL });
      for (const { knob, values, input, value } of knobs) {
        input.value = at[knob];
        say(value, values[at[knob]]);
        change(input, { "aria-valuetext": values[at[knob]] });
      }
      say(words, said(data, at));
    }

    const point = ({ clientX, clientY }) => {
      const box = picture.getBoundingClientRect();
      const inside = (share, length) => Math.min(length - 1, Math.max(0, Math.floor(share * length)));
      move({ rate: inside((clientX - box.left) / box.width, rates.length), price: inside(1 - (clientY - box.top) / box.height, prices.length) });
    };
    picture.addEventListener("pointerdown", (event) => {
      picture.setPointerCapture(event.pointerId);
      point(event);
    });
    picture.addEventListener("pointermove", (event) => event.buttons && point(event));
    const axes = element("p", { class: "live-looks-axes" }, "price ↑ hazard →, darker: more looks pay; framed: as many as the paper allows");
    place.replaceChildren(element("div", { class: "live-looks-knobs" }, ...knobs.map(({ line }) => line)), picture, axes, words);
    move({});
  }

  const TALL = 250, EDGE = { left: 42, right: 64, top: 14, bottom: 34 };

  function showWorths(place) {
    const data = JSON.parse(place.querySelector("script").textContent);
    const { rates, horizon, curves, beside } = data, scores = Object.keys(curves);
    const at = { score: scores[0], rate: data.at }, wide = place.clientWidth < 480 ? 340 : 560; // on a phone letters keep their size
    const x = (step) => EDGE.left + (step / (horizon - 1)) * (wide - EDGE.left - EDGE.right);
    const picture = shape("svg", { class: "lp-picture worth-picture", viewBox: `0 0 ${wide} ${TALL}`, role: "img" });
    const words = element("p", { role: "status", "aria-live": "polite" });
    const choice = element("select", { "aria-label": "what is scored" }, ...scores.map((score) => element("option", { value: score }, score)));
    const input = element("input", { type: "range", min: 0, max: rates.length - 1, step: 1, "aria-label": "hazard, a step" });
    const value = element("output");
    const text = (place, said, more = {}) => shape("text", { fill: "currentColor", "font-size": 13, ...place, ...more }, said);

    function move(to) {
      Object.assign(at, to);
      const own = curves[at.score], most = Math.max(...own.flat());
      const top = [1, 0.5, 0.3, 0.25, 0.2].filter((end) => end >= most).pop();
      const y = (worth) => EDGE.top + (1 - worth / top) * (TALL - EDGE.top - EDGE.bottom);
      const line = (curve) => curve.map((worth, step) => `${step ? "L" : "M"}${x(step).toFixed(1)} ${y(worth).toFixed(1)}`).join("");
      const ticks = [0, top / 2, top].map((worth) => [
        shape("line", { x1: EDGE.left, x2: wide - EDGE.right, y1: y(worth), y2: y(worth), stroke: "currentColor", "stroke-opacity": 0.18 }),
        text({ x: EDGE.left - 6, y: y(worth) + 4 }, String(worth), { "text-anchor": "end" })]);
      const steps = [0, 5, 10, 15, 20, 25, 29].filter((step) => step < horizon).map((step) => text({ x: x(step), y: TALL - EDGE.bottom + 16 }, String(step), { "text-anchor": "middle" }));
      const faint = beside.filter((rate) => rate !== at.rate).map((rate) => shape("path", { d: line(own[rate]), fill: "none", stroke: "currentColor", "stroke-opacity": 0.45, "stroke-dasharray": "4 3" }));
      const chosen = own[at.rate], best = chosen.indexOf(Math.max(...chosen));
      const ends = [...beside, at.rate].filter((rate, place, all) => all.lastIndexOf(rate) === place).map((rate) => ({ rate, to: y(own[rate].at(-1)) })).sort((one, other) => one.to - other.to);
      ends.forEach((end, place) => { if (place) end.to = Math.max(end.to, ends[place - 1].to + 14); });
      const over = Math.max(0, (ends.at(-1)?.to ?? 0) - (TALL - EDGE.bottom));
      const names = ends.map(({ rate, to }) => text({ x: wide - EDGE.right + 6, y: to - over + 4 }, `h = ${rates[rate]}`, rate === at.rate ? { "font-weight": "bold" } : { "fill-opacity": 0.75 }));
      picture.replaceChildren(...ticks.flat(), ...steps, ...faint,
        shape("line", { x1: x(best), x2: x(best), y1: y(0), y2: y(chosen[best]), stroke: "var(--pst-color-primary, #0a7d91)", "stroke-dasharray": "2 3" }),
        shape("path", { d: line(chosen), fill: "none", stroke: "var(--pst-color-primary, #0a7d91)", "stroke-width": 2.5 }),
        shape("circle", { cx: x(best), cy: y(chosen[best]), r: 4.5, fill: "var(--pst-color-primary, #0a7d91)" }), ...names,
        text({ x: (EDGE.left + wide - EDGE.right) / 2, y: TALL - 3 }, "step of the look", { "text-anchor": "middle" }));
      const told = `At a hazard of ${rates[at.rate]} a step, ${at.score}, one look is worth most at step ${best}: ${chosen[best].toFixed(2)} fields.`;
      change(picture, { "aria-label": `worth of one look in fields, by its step. ${told}` });
      change(input, { "aria-valuetext": String(rates[at.rate]) });
      input.value = at.rate;
      choice.value = at.score;
      say(value, String(rates[at.rate]));
      say(words, told);
    }

    choice.addEventListener("change", () => move({ score: choice.value }));
    input.addEventListener("input", () => move({ rate: Number(input.value) }));
    const knobs = [element("label", {}, "score ", choice), element("label", {}, "hazard, a step ", value, input)];
    place.replaceChildren(element("div", { class: "live-looks-knobs" }, ...knobs), picture, words);
    move({});
  }

  document.querySelectorAll(".live-looks").forEach(show);
  document.querySelectorAll(".live-worths").forEach(showWorths);
})();
