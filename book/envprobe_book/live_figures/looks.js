// The plane of hazard and price under the reader's hand: how many looks pay.
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

  document.querySelectorAll(".live-looks").forEach(show);
})();
