// Plots in a page: rows of data become panels with axes, intervals and marks, and follow each update.
//
// A classic script, after the tools of widgets/shared.js (`EnvProbe.dom`). It makes `EnvProbe.plot(figure)`,
// which returns {root, update(rows, ghost, more), close()}.
//
//   figure   name, kind, title, label, across, line, limits, columns, digits, about, and series: how each
//            series is drawn, {id: {title, colour, dark, marker, filled, dash}}; lead, the panel that is shown at
//            first, large, with a choice of the others; loud, the series in colour and with names, the others
//            being grey until a reader asks for them; of a plane also mark {x, y} and
//            onmove({x, y}), which is told where a reader points. A title that follows is a list of
//            texts and slots (see telling.js)
//   rows     forest, bars, tornado  {panel, name, series, value, low, high, printed}
//            curves                 {panel, name, series, x, value, low, high}, arrays
//            points, frontier       {panel, name, series, x, x_low, x_high, value, low, high, printed_x,
//                                   printed_value, competing}
//            plane                  {x, y, value, low, high}
//   ghost    rows of the same shape that are drawn faintly behind, or null
//   more     of a plane {at: {x, y}}, where the reader is
//
// What is null or NaN is not drawn. Text is always set as text.
(() => {
  "use strict";

  const { SVG, element, change, say, KEEPS_KEYS, OUTLINES } = globalThis.EnvProbe.dom;
  const EMPTY = "–", MINUS = "−";
  const ROW = 24, DENSE = 18, DENSEST = 13, AXIS = 24, TOP = 6; // pixels
  const MANY = 8, MOST = 18; // rows of values, one below the other, past which they are dense
  const LETTER = 6.6; // pixels of a letter of a row's name, about
  const NEAR = 28; // pixels from a mark at which the pointer finds it
  const NARROW = 140; // pixels of a panel without values in digits, beside its rows' names
  const PHONE = 620; // pixels of a figure that is narrow
  const LEAST = 70; // pixels of the narrowest panel
  const UP = 36; // pixels for the values of an axis upward
  const TALL = 300; // pixels of all panels of a figure with several rows of them
  const EVERY = 5; // points of a curve between two markers
  const FULL = 8; // of a plane's value, where its colour is full
  const COLOURS = { ahead: [0, 114, 178], behind: [213, 94, 0] };

  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  function number(value, digits = 2) {
    if (!isNumber(value)) return EMPTY;
    const text = Math.abs(value).toFixed(digits);
    return value >= 0 || !/[1-9]/.test(text) ? text : MINUS + text;
  }

  // TeX as it stands in titles, `$A_H$` or `$c{+}d$`, as text with a lowered letter.
  function sayWithSubscripts(node, text) {
    if (node.saidText === text) return;
    node.saidText = text;
    const parts = text.replace(/[${}]/g, "").split(/_(\w)/);
    node.replaceChildren(...parts.map((part, place) => (place % 2 ? element("sub", {}, part) : part)));
  }

  const plain = (text) => text.replace(/[${}_]/g, "");

  // A pen draws the nodes of a picture in order and uses again those that are there: a slider's tick makes none.
  function penOn(svg) {
    let next = svg.firstChild;
    return {
      draw(tag, attributes, text) {
        let node = next;
        if (node && node.localName === tag) next = node.nextSibling;
        else {
          node = document.createElementNS(SVG, tag);
          svg.insertBefore(node, next);
        }
        const before = node.drawn ?? {};
        for (const name of Object.keys(before)) if (!(name in attributes)) node.removeAttribute(name);
        for (const [name, value] of Object.entries(attributes)) if (before[name] !== value) node.setAttribute(name, value);
        node.drawn = attributes;
        if (text !== undefined) say(node, text);
        return node;
      },
      end() {
        while (next) {
          const gone = next;
          next = next.nextSibling;
          gone.remove();
        }
      },
    };
  }

  // Scales and their ticks.

  function scale([low, high], from, to) {
    const at = (value) => from + ((value - low) / (high - low)) * (to - from);
    at.invert = (pixel) => low + ((pixel - from) / (to - from)) * (high - low);
    return at;
  }

  function ticksOf([low, high], most) {
    const rough = (high - low) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
    if (ticks.length < 2 && most < 8) return ticksOf([low, high], 2 * most); // one alone gives no scale
    return ticks.map((value) => [value, number(value, digits)]);
  }

  // The range of an axis: it holds all that is drawn, and only grows until the rows are others.
  function grown(before, values, limits) {
    const all = values.filter(isNumber);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (all.length === 0) [low, high] = limits ?? [0, 1];
    const margin = 0.04 * (high - low) || 0.5;
    [low, high] = limits ? [Math.min(limits[0], low), Math.max(limits[1], high)] : [low - margin, high + margin];
    return before ? [Math.min(before[0], low), Math.max(before[1], high)] : [low, high];
  }

  const QUIET = { colour: "#a8adb3", dark: "#62676d" };
  const isQuiet = (figure, { series }) => Boolean(figure.loud?.length) && !figure.asked && !figure.loud.includes(series);
  const styleOf = (figure, row) => (isQuiet(figure, row) ? { ...figure.series[row.series], ...QUIET } : figure.series[row.series]);

  const colours = (style) => (style ? { style: `--light: ${style.colour}; --dark: ${style.dark}` } : {});

  function markAt(pen, x, y, style, { hollow = false, ghost = false, radius = 4.5 } = {}) {
    const kind = ghost ? "lp-mark lp-ghost" : hollow || style?.filled === false ? "lp-mark lp-hollow lp-ink" : "lp-mark lp-ink";
    const d = OUTLINES[style?.marker] ?? OUTLINES.o;
    pen.draw("path", { class: kind, d, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${radius})`, ...colours(ghost ? null : style) });
  }

  const printedAt = (pen, x, y) => pen.draw("path", {
    class: "lp-printed", d: OUTLINES.D, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(5)`,
  });

  const line = (pen, kind, x1, y1, x2, y2, more = {}) =>
    pen.draw("line", { class: kind, x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), ...more });

  const said = (value, low, high, digits) =>
    number(value, digits) + (isNumber(low) && isNumber(high) ? ` [${number(low, digits)}, ${number(high, digits)}]` : "");

  // Rows of values: a dot with its interval, or a bar.

  const sizeOf = (count) => (count > MOST ? DENSEST : count > MANY ? DENSE : ROW);

  function drawRows(panel, figure, { rows, ghosts, range, width, place }) {
    const { kind, digits = 2 } = figure;
    const pairs = rows.map((row, i) => [row, ghosts?.[i]]);
    if (kind === "tornado") pairs.sort(([a], [b]) => Math.abs(b.value) - Math.abs(a.value));
    const left = place.first ? place.left : 0, size = sizeOf(place.down * rows.length);
    const right = width - left >= NARROW ? 48 : 8;
    const height = pairs.length * size + TOP;
    const x = scale(range, left + 4, width - right);
    const pen = penOn(panel.svg);
    panel.size(width, height + (place.last ? AXIS : 0));
    axisAcross(pen, x, ticksOf(range, Math.max(2, (width - left - right) / 56)), height, TOP, place.last);
    const zero = figure.line ?? (kind === "forest" ? null : 0);
    if (isNumber(zero) && zero >= range[0] && zero <= range[1]) line(pen, "lp-zero", x(zero), 0, x(zero), height);
    panel.marks = pairs.map(([row, ghost], i) => {
      const y = TOP + (i + 0.5) * size, style = figure.series[row.series];
      const most = Math.floor((left - 8) / LETTER);
      const name = plain(row.name), short = name.length > most ? `${name.slice(0, most - 1)}…` : name;
      if (place.first) pen.draw("text", { class: "lp-name", x: left - 4, y: y + 4, "text-anchor": "end" }, short);
      if (kind === "forest") dot(pen, x, y, row, ghost, style);
      else bar(pen, x, y, row, ghost, style, range);
      if (isNumber(row.printed)) printedAt(pen, x(row.printed), y);
      if (right > 8) pen.draw("text", { class: "lp-value", x: width - 2, y: y + 4, "text-anchor": "end" }, number(row.value, digits));
      return { x: isNumber(row.value) ? x(row.value) : left, y, row, text: tell(figure, row, ghost) };
    });
    pen.end();
  }

  function dot(pen, x, y, row, ghost, style) {
    if (ghost && isNumber(ghost.value)) {
      if (isNumber(ghost.low)) line(pen, "lp-ghost", x(ghost.low), y + 6, x(ghost.high), y + 6);
      markAt(pen, x(ghost.value), y + 6, style, { ghost: true, radius: 3.5 });
    }
    if (!isNumber(row.value)) return;
    if (isNumber(row.low)) {
      line(pen, "lp-interval lp-ink", x(row.low), y, x(row.high), y, colours(style));
      for (const end of [row.low, row.high]) line(pen, "lp-interval lp-ink", x(end), y - 4, x(end), y + 4, colours(style));
    }
    markAt(pen, x(row.value), y, style);
  }

  function bar(pen, x, y, row, ghost, style, [low]) {
    const from = x(Math.max(0, low));
    const box = (value, kind, dy, height) => {
      const [begin, end] = [from, x(value)].sort((a, b) => a - b);
      pen.draw("rect", { class: kind, x: begin.toFixed(1), y: y + dy, width: Math.max(0.5, end - begin).toFixed(1), height, ...colours(kind.includes("ghost") ? null : style) });
    };
    if (isNumber(row.value)) box(row.value, "lp-bar lp-ink", -7, 14);
    if (ghost && isNumber(ghost.value)) box(ghost.value, "lp-bar lp-ghost", -9, 18);
    if (isNumber(row.low)) line(pen, "lp-whisker", x(row.low), y, x(row.high), y);
  }

  function axisAcross(pen, x, ticks, height, top, named) {
    for (const [value, text] of ticks) {
      line(pen, "lp-grid", x(value), top, x(value), height);
      if (named) pen.draw("text", { class: "lp-tick", x: x(value).toFixed(1), y: height + 15, "text-anchor": "middle" }, text);
    }
  }

  function axisUp(pen, y, ticks, left, right, named) {
    for (const [value, text] of ticks) {
      line(pen, "lp-grid", left, y(value), right, y(value));
      if (named) pen.draw("text", { class: "lp-tick", x: left - 4, y: (y(value) + 4).toFixed(1), "text-anchor": "end" }, text);
    }
  }

  // Values over an axis: lines with their bands, or marks with both intervals.

  function frameOf(panel, figure, { range, across, width, place }) {
    const [least, most] = place.down > 1 ? [90, TALL / place.down] : [140, 300];
    const left = place.first ? UP : 4, right = 10;
    const height = Math.round(Math.max(least, Math.min(most, (figure.kind === "curves" ? 0.62 : 0.72) * (width - left + UP))));
    panel.size(width, height + (place.last ? AXIS : TOP));
    const x = scale(across, left, width - right), y = scale(range, height, TOP);
    const pen = penOn(panel.svg);
    axisUp(pen, y, ticksOf(range, height / 32), left, width - right, place.first);
    for (const [value, text] of place.last ? ticksOf(across, Math.max(1, (width - left) / 60)) : []) {
      pen.draw("text", { class: "lp-tick", x: x(value).toFixed(1), y: height + 15, "text-anchor": "middle" }, text);
    }
    if (isNumber(figure.line)) line(pen, "lp-zero lp-dotted", left, y(figure.line), width - right, y(figure.line));
    return { pen, x, y, right: width - right };
  }

  function pathOf(values, x, y) {
    let open = false;
    return values.x.map((time, i) => {
      const value = values.value[i];
      if (!isNumber(value)) {
        open = false;
        return "";
      }
      const step = `${open ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      open = true;
      return step;
    }).join("");
  }

  function bandOf({ x: times, low, high }, x, y) {
    const known = times.map((_, i) => i).filter((i) => isNumber(low?.[i]) && isNumber(high?.[i]));
    if (known.length < 2) return "";
    const edge = (values, places) => places.map((i) => `${x(times[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`).join("L");
    return `M${edge(high, known)}L${edge(low, [...known].reverse())}Z`;
  }

  function drawCurves(panel, figure, view) {
    const { pen, x, y } = frameOf(panel, figure, view);
    for (const ghost of view.ghosts ?? []) pen.draw("path", { class: "lp-line lp-ghost", d: pathOf(ghost, x, y) });
    panel.marks = [];
    for (const [i, row] of view.rows.entries()) {
      const style = styleOf(figure, row);
      pen.draw("path", { class: "lp-band lp-ink", d: bandOf(row, x, y), ...colours(style) });
      const dash = style?.dash ? { "stroke-dasharray": style.dash } : {};
      pen.draw("path", { class: "lp-line lp-ink", d: pathOf(row, x, y), ...colours(style), ...dash });
      row.x.forEach((time, at) => {
        if (!isNumber(row.value[at])) return;
        if (style?.marker && at % EVERY === 0) markAt(pen, x(time), y(row.value[at]), style, { radius: 3 });
        const ghost = view.ghosts?.[i];
        const part = (own) => ({ ...own, value: own.value[at], low: own.low?.[at], high: own.high?.[at] });
        const text = `${plain(figure.across || "x")} ${time}: ${tell(figure, part(row), ghost && part(ghost))}`;
        panel.marks.push({ x: x(time), y: y(row.value[at]), row, step: time, text });
      });
    }
    pen.end();
  }

  // The rows that no other beats on both axes.
  const nondominated = (rows) => rows.filter((one) => !rows.some((other) =>
    other.x >= one.x && other.value >= one.value && (other.x > one.x || other.value > one.value)));

  function drawPoints(panel, figure, view) {
    const { pen, x, y, right } = frameOf(panel, figure, view);
    const best = figure.kind === "frontier" ? nondominated(view.rows.filter(({ competing }) => competing !== false)) : view.rows;
    if (figure.kind === "frontier") {
      const steps = [...best].sort((a, b) => a.x - b.x || b.value - a.value);
      pen.draw("path", { class: "lp-front", d: steps.map((row, i) => `${i ? "L" : "M"}${x(row.x).toFixed(1)} ${y(row.value).toFixed(1)}`).join("") });
    }
    view.ghosts?.forEach((ghost, i) => {
      if (!isNumber(ghost.x) || !isNumber(ghost.value)) return;
      const row = view.rows[i];
      line(pen, "lp-ghost lp-way", x(ghost.x), y(ghost.value), x(row.x), y(row.value));
      markAt(pen, x(ghost.x), y(ghost.value), figure.series[row.series], { ghost: true, radius: 3.5 });
    });
    const taken = [];
    panel.marks = [];
    view.rows.forEach((row, i) => {
      if (!isNumber(row.x) || !isNumber(row.value)) return;
      const style = styleOf(figure, row), [px, py] = [x(row.x), y(row.value)];
      if (isNumber(row.x_low)) line(pen, "lp-thin lp-ink", x(row.x_low), py, x(row.x_high), py, colours(style));
      if (isNumber(row.low)) line(pen, "lp-thin lp-ink", px, y(row.low), px, y(row.high), colours(style));
      markAt(pen, px, py, style, { hollow: !best.includes(row) });
      if (isNumber(row.printed_x) && isNumber(row.printed_value)) printedAt(pen, x(row.printed_x), y(row.printed_value));
      panel.marks.push({ x: px, y: py, row, text: tell(figure, row, view.ghosts?.[i]) });
    });
    const loud = panel.marks.filter(({ row }) => !isQuiet(figure, row));
    const named = view.width < NARROW ? [] : loud; // the legend names them, too
    for (const { x: px, y: py, row } of named) nameMark(pen, figure, row, px, py, right, taken, panel.marks);
    pen.end();
  }

  // A mark's name beside it, where there is room for it.
  function nameMark(pen, figure, row, px, py, right, taken, marks) {
    const text = plain(figure.series[row.series]?.title ?? row.name);
    const wide = text.length * 5.6;
    for (const [begin, anchor] of [[px + 7, "start"], [px - 7 - wide, "end"]]) {
      const box = [begin, py - 7, begin + wide, py + 6];
      const meets = ([a, b, c, d]) => a < box[2] && c > box[0] && b < box[3] && d > box[1];
      if (box[0] < 38 || box[2] > right + 6 || taken.some(meets)) continue;
      if (marks.some((one) => meets([one.x - 4, one.y - 4, one.x + 4, one.y + 4]))) continue;
      taken.push(box);
      pen.draw("text", { class: "lp-point-name", x: anchor === "start" ? begin : px - 7, y: py + 4, "text-anchor": anchor }, text);
      return;
    }
  }

  // The plane of two knobs.

  function shade(value, low, high, zero) {
    if (!isNumber(value) || (low <= zero && zero <= high)) return "var(--lp-open)";
    const [red, green, blue] = value > zero ? COLOURS.ahead : COLOURS.behind;
    return `rgba(${red}, ${green}, ${blue}, ${(0.12 + 0.88 * Math.min(1, Math.abs(value - zero) / FULL)).toFixed(3)})`;
  }

  function drawPlane(panel, figure, { rows, width, at }) {
    const xs = [...new Set(rows.map((row) => row.x))].sort((a, b) => a - b);
    const ys = [...new Set(rows.map((row) => row.y))].sort((a, b) => a - b);
    const height = Math.round(Math.min(380, 0.66 * width)), left = 34;
    const [dx, dy] = [(width - left - 6) / xs.length, (height - TOP) / ys.length];
    const x = scale([xs[0], xs.at(-1)], left + dx / 2, left + dx * (xs.length - 0.5));
    const y = scale([ys[0], ys.at(-1)], height - dy / 2, TOP + dy / 2);
    panel.size(width, height + AXIS);
    const pen = penOn(panel.svg), values = new Map(rows.map((row) => [`${row.x} ${row.y}`, row.value]));
    const isAlike = (row, step) => values.get(`${row.x} ${ys[ys.indexOf(row.y) + step]}`) === row.value;
    pen.draw("defs", {}).innerHTML ||= `<pattern id="${figure.name}-same" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" class="lp-hatch"/></pattern>`;
    panel.marks = rows.map((row) => {
      const box = { x: (x(row.x) - dx / 2).toFixed(1), y: (y(row.y) - dy / 2).toFixed(1), width: (dx + 0.3).toFixed(1), height: (dy + 0.3).toFixed(1) };
      pen.draw("rect", { class: "lp-cell", fill: shade(row.value, row.low, row.high, figure.line ?? 0), ...box });
      if (isAlike(row, -1) || isAlike(row, 1)) pen.draw("rect", { class: "lp-same", fill: `url(#${figure.name}-same)`, ...box });
      const where = `${plain(figure.across)} ${row.x}, ${figure.up ?? "y"} ${number(row.y, 2)}`;
      return { x: x(row.x), y: y(row.y), row, text: `${where}: ${said(row.value, row.low, row.high, figure.digits)} ${plain(figure.label)}` };
    });
    for (const [value, text] of ticksOf([xs[0], xs.at(-1)], width / 60)) pen.draw("text", { class: "lp-tick", x: x(value), y: height + 15, "text-anchor": "middle" }, text);
    for (const [value, text] of ticksOf([ys[0], ys.at(-1)], height / 50)) pen.draw("text", { class: "lp-tick", x: left - 5, y: y(value) + 4, "text-anchor": "end" }, text);
    if (figure.mark) pen.draw("path", { class: "lp-cross", d: `M${x(figure.mark.x) - 7} ${y(figure.mark.y)}h14m-7-7v14` });
    if (at) pen.draw("circle", { class: "lp-here", cx: x(at.x), cy: y(at.y), r: 8 });
    pen.end();
    figure.onplaced?.({ svg: panel.svg, from: x(xs[0]), to: x(xs.at(-1)), top: y(ys.at(-1)), bottom: y(ys[0]) });
    panel.pointed = (px, py) => {
      const clamp = (value, own) => Math.min(own.at(-1), Math.max(own[0], value));
      figure.onmove?.({ x: clamp(x.invert(px), xs), y: clamp(y.invert(py), ys) });
    };
  }

  // What a mark says.
  function tell(figure, row, ghost) {
    const { digits = 2 } = figure;
    const own = figure.series[row.series]?.title;
    const name = plain(row.name && row.name !== row.series ? row.name : own ?? row.name ?? "");
    const both = isNumber(row.x) ? `${plain(figure.across)} ${said(row.x, row.x_low, row.x_high, digits)}, ${plain(figure.label)} ` : "";
    const parts = [`${name} ${both}${said(row.value, row.low, row.high, digits)}`];
    if (isNumber(row.printed)) parts.push(`printed ${number(row.printed, digits)}`);
    else if (isNumber(row.printed_x)) parts.push(`printed ${number(row.printed_x, digits)}, ${number(row.printed_value, digits)}`);
    if (ghost && ghost.value !== row.value) parts.push(`at this page’s values ${number(ghost.value, digits)}`);
    return parts.join("; ");
  }

  const DRAWS = { forest: drawRows, bars: drawRows, tornado: drawRows, curves: drawCurves, points: drawPoints, frontier: drawPoints, plane: drawPlane };

  // The mark that an arrow leads to: the next one; of curves, up and down lead to the same step of another curve.
  function nextMark({ marks, here }, key) {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key], count = marks.length;
    if (!way || count === 0) return undefined;
    if (here < 0) return way > 0 ? 0 : count - 1;
    const own = marks[here], isAcross = own?.step !== undefined && /Up|Down/.test(key);
    const after = (place) => (place + way + count) % count;
    if (!isAcross) return after(here);
    for (let place = after(here); place !== here; place = after(place)) {
      if (marks[place].row !== own.row && marks[place].step === own.step) return place;
    }
    return here;
  }

  // A panel: its title, its picture, and the mark that the pointer or the keyboard is at.
  function makePanel(title, figure, tip) {
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({ class: "lp-picture", tabindex: "0", role: "group", ...KEEPS_KEYS })) svg.setAttribute(name, value);
    const head = element("p", { class: "lp-panel-title" });
    sayWithSubscripts(head, title);
    const label = [plain(title) || plain(figure.about || figure.title), "arrow keys read the values"].filter(Boolean).join("; ");
    svg.setAttribute("aria-label", label);
    const root = element("div", { class: "lp-panel" }, ...(title ? [head] : []), svg);
    const panel = { root, svg, marks: [], here: -1, size: null, pointed: null };
    panel.size = (width, height) => change(svg, { viewBox: `0 0 ${width} ${height}`, height });
    const go = (place) => {
      panel.here = place;
      tip.show(svg, panel.marks[place]);
    };
    svg.addEventListener("pointermove", (event) => {
      const [px, py] = [event.offsetX, event.offsetY];
      if (panel.pointed && event.buttons) panel.pointed(px, py);
      const distance = ({ x, y }) => (figure.kind === "plane" || /points|frontier|curves/.test(figure.kind) ? Math.hypot(x - px, y - py) : Math.abs(y - py));
      let best = -1;
      panel.marks.forEach((one, i) => {
        if (best < 0 || distance(one) < distance(panel.marks[best])) best = i;
      });
      if (best >= 0 && distance(panel.marks[best]) <= NEAR) go(best);
      else tip.hide();
    });
    svg.addEventListener("pointerdown", (event) => {
      if (!panel.pointed) return;
      svg.setPointerCapture(event.pointerId);
      panel.pointed(event.offsetX, event.offsetY);
    });
    svg.addEventListener("pointerleave", tip.hide);
    svg.addEventListener("blur", tip.hide);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") tip.hide();
      const next = nextMark(panel, event.key);
      if (next === undefined) return;
      event.preventDefault();
      go(next);
    });
    return panel;
  }

  function makeTip() {
    const root = element("div", { class: "lp-tip", role: "status", hidden: "" });
    return {
      root,
      show(svg, { x, y, text }) {
        say(root, text);
        root.hidden = false;
        const box = svg.getBoundingClientRect(), home = root.offsetParent?.getBoundingClientRect() ?? box;
        const most = home.width - root.offsetWidth - 4;
        root.style.left = `${Math.max(4, Math.min(most, box.left - home.left + x - root.offsetWidth / 2))}px`;
        const above = box.top - home.top + y - root.offsetHeight - 12;
        root.style.top = `${above > 0 ? above : box.top - home.top + y + 14}px`;
      },
      hide: () => { root.hidden = true; },
    };
  }

  function legendOf(figure, rows) {
    const shown = [...new Set(rows.map((row) => row.series))].filter((name) => figure.series[name]);
    return shown.filter((series) => !isQuiet(figure, { series })).map((name) => {
      const style = figure.series[name], svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", "-12 -7 24 14");
      svg.setAttribute("aria-hidden", "true");
      const pen = penOn(svg);
      if (figure.kind === "curves") line(pen, "lp-line lp-ink", -11, 0, 11, 0, { ...colours(style), ...(style.dash ? { "stroke-dasharray": style.dash } : {}) });
      if (style.marker) markAt(pen, 0, 0, style);
      return element("span", { class: "lp-key" }, svg, plain(style.title));
    });
  }

  function plot(figure) {
    const upright = /curves|points|frontier/.test(figure.kind);
    const [title, up, across] = ["lp-title", "lp-label lp-up", "lp-label"].map((kind) => element("p", { class: kind }));
    if (Array.isArray(figure.title)) title.append(...figure.title.map((part) => (part.kind ? element("span", { class: "live-told", "data-told": JSON.stringify(part) }, part.text) : part)));
    else sayWithSubscripts(title, figure.title ?? "");
    const isPlane = figure.kind === "plane";
    sayWithSubscripts(up, upright ? `↑ ${figure.label}` : isPlane ? `↑ ${figure.up ?? ""}` : "");
    sayWithSubscripts(across, upright || isPlane ? `${figure.across} →` : figure.label);
    const panels = element("div", { class: "lp-panels" }), legend = element("div", { class: "lp-legend" });
    const numbers = element("ul", { class: "lp-numbers", "aria-label": figure.about });
    const tip = makeTip();
    const head = [title, up].filter((node) => node.childNodes.length);
    const root = element("div", { class: `lp lp-${figure.kind}`, role: "group", "aria-label": plain(figure.about || figure.title || "") }, ...head, panels, across, legend, numbers, tip.root);
    let made = new Map(), shape = "", ranges = {}, last = null, chosen = figure.lead ?? "";
    const choice = element("select", {}), asks = element("button", { type: "button", class: "lp-asks" });
    if (chosen) title.after(element("label", { class: "lp-choice" }, "Shown: ", choice));
    choice.addEventListener("change", () => {
      chosen = choice.value;
      again();
    });
    asks.addEventListener("click", () => {
      figure.asked = !figure.asked;
      again();
    });

    function again() {
      shape = "";
      update(...last);
    }

    // The panel that is chosen, or all of them.
    function inSight(rows) {
      if (!figure.lead || !rows) return rows;
      const names = [...new Set(rows.map(({ panel }) => panel ?? ""))];
      if (choice.children.length !== names.length + 1) {
        choice.replaceChildren(...names.map((name) => element("option", { value: name }, plain(name))), element("option", { value: "" }, "all, side by side"));
      }
      choice.value = chosen;
      return chosen ? rows.filter(({ panel }) => panel === chosen) : rows;
    }

    function values(rows, names) {
      return rows.flatMap((row) => names.flatMap((name) => row[name] ?? []));
    }

    function update(given, before = null, more = {}) {
      last = [given, before, more];
      const rows = inSight(given), ghost = before && inSight(before);
      const own = JSON.stringify([rows.length, [...new Set(rows.map(({ panel }) => panel))]]);
      if (own !== shape) build(rows);
      if (own !== shape || !ghost) ranges = {};
      shape = own;
      const all = ghost ? [...rows, ...ghost] : rows;
      const bars = /bars|tornado/.test(figure.kind) ? [0] : [];
      const shown = upright ? ["value", "low", "high", "printed_value"] : ["value", "low", "high", "printed"];
      ranges.value = grown(ranges.value, [...values(all, shown), ...bars, ...(isNumber(figure.line) ? [figure.line] : [])], figure.limits);
      if (upright) ranges.across = grown(ranges.across, values(all, ["x", "x_low", "x_high", "printed_x"]), figure.kind === "curves" ? [0, 1] : null);
      draw(rows, ghost, more);
    }

    function build(rows) {
      made = new Map([...new Set(rows.map(({ panel }) => panel ?? ""))].map((name) => [name, makePanel(name, figure, tip)]));
      panels.replaceChildren(...[...made.values()].map((panel) => panel.root));
      legend.replaceChildren(...(upright ? legendOf(figure, rows) : []));
      if (figure.kind === "frontier") {
        const key = (filled, text) => {
          const svg = document.createElementNS(SVG, "svg");
          change(svg, { viewBox: "-12 -7 24 14", "aria-hidden": "true" });
          markAt(penOn(svg), 0, 0, { marker: "o", filled, colour: "currentColor", dark: "currentColor" });
          return element("span", { class: "lp-key" }, svg, text);
        };
        legend.append(key(true, "none is better at both"), key(false, "another is better at both, or it sees the truth"));
      }
      if (figure.loud?.length) {
        const quiet = new Set(rows.map(({ series }) => series).filter((one) => !figure.loud.includes(one))).size;
        say(asks, figure.asked ? "fewer in colour" : `name the ${quiet === 1 ? "one" : quiet} in grey`);
        if (quiet) legend.append(asks);
      }
      const hasPrinted = rows.some((row) => isNumber(row.printed) || isNumber(row.printed_x));
      if (hasPrinted) {
        const svg = document.createElementNS(SVG, "svg");
        svg.setAttribute("viewBox", "-12 -7 24 14");
        svg.setAttribute("aria-hidden", "true");
        const pen = penOn(svg);
        printedAt(pen, 0, 0);
        legend.append(element("span", { class: "lp-key" }, svg, "as the paper prints"));
      }
    }

    // Panels stand in columns, under one another's axes: what they share is written once, on the left and below.
    function arrange(groups) {
      const width = panels.clientWidth, gap = width < PHONE ? 8 : 16, count = groups.length;
      const names = (group) => JSON.stringify(group.map(({ name }) => name));
      const shares = upright || (figure.kind !== "tornado" && groups.every((group) => names(group) === names(groups[0])));
      const longest = Math.max(...groups.flat().map(({ name }) => plain(name).length), 1);
      let columns = Math.min(figure.columns || 1, count);
      const own = () => (shares && !upright ? Math.min((columns > 1 ? 0.36 : 0.5) * width, longest * LETTER + 10) : 0);
      const each = () => (width - (columns - 1) * gap - (upright ? UP : own())) / columns;
      if (width < PHONE && !shares) columns = 1;
      const least = figure.kind === "forest" ? NARROW : LEAST; // its values stay beside its marks
      while (columns > 1 && each() < least) columns -= 1;
      const down = Math.ceil(count / columns), full = count % columns === 0;
      const alone = Math.min(0.5 * (width / columns), longest * LETTER + 10); // where each panel has its own names
      const left = shares ? own() : alone, first = shares ? each() + (upright ? UP - 4 : own()) : 0;
      const rest = shares ? (width - first - (columns - 1) * gap) / Math.max(1, columns - 1) : 0;
      const widths = Array.from({ length: columns }, (_, at) => (shares ? `${(at ? rest : first).toFixed(1)}px` : "minmax(0, 1fr)"));
      const style = columns > 1 ? widths.join(" ") : "minmax(0, 1fr)";
      if (panels.style.gridTemplateColumns !== style) panels.style.gridTemplateColumns = style;
      panels.style.columnGap = `${gap}px`;
      return groups.map((_, at) => {
        const row = Math.floor(at / columns);
        return { left, down, first: !shares || at % columns === 0, last: !shares || row >= down - (full ? 1 : 2) };
      });
    }

    function draw(rows, ghost, more) {
      const of = (name, all) => all?.filter((row) => (row.panel ?? "") === name);
      if (panels.clientWidth < 60) return; // out of sight
      const places = isPlane ? [{ first: false }] : arrange([...made.keys()].map((name) => of(name, rows)));
      const widths = [...made.values()].map(({ root: own }) => Math.round(own.clientWidth)); // before any is drawn: one layout
      for (const [at, [name, panel]] of [...made].entries()) {
        const width = widths[at];
        panel.root.style.setProperty("--lp-left", `${!places[at].first ? 0 : upright ? UP : places[at].left}px`);
        const view = { rows: of(name, rows), ghosts: of(name, ghost), range: ranges.value, across: ranges.across, width, place: places[at], ...more };
        DRAWS[figure.kind](panel, figure, view);
      }
      if (!isPlane) tellAll(rows);
    }

    // Of a curve the values of all steps, and the last one's interval.
    function tellCurve(row) {
      const known = row.x.map((_, at) => at).filter((at) => isNumber(row.value[at])), end = known.at(-1);
      if (end === undefined) return tell(figure, { ...row, value: NaN }, null);
      const steps = known.map((at) => number(row.value[at], figure.digits)).join(" ");
      const last = said(row.value[end], row.low?.[end], row.high?.[end], figure.digits);
      return `${plain(figure.series[row.series]?.title ?? row.name)}, ${plain(figure.across)} ${row.x[known[0]]} to ${row.x[end]}: ${steps}; at the end ${last}`;
    }

    function tellAll(rows) {
      const texts = rows.map((row) => `${row.panel ? `${plain(row.panel)}, ` : ""}${figure.kind === "curves" ? tellCurve(row) : tell(figure, row, null)}`);
      while (numbers.children.length > texts.length) numbers.lastChild.remove();
      texts.forEach((text, i) => say(numbers.children[i] ?? numbers.appendChild(element("li")), text));
    }

    const watching = new ResizeObserver(() => last && draw(inSight(last[0]), last[1] && inSight(last[1]), last[2]));
    watching.observe(panels);
    return { root, update, close: () => watching.disconnect() };
  }

  Object.assign(plot, { number, FULL });
  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { plot });
})();
