// Answering: what is found anew at each move of the bar, by live figures and by the explorer alike.
//
// A classic script, after estimates.js and bar.js. It makes
//
//   EnvProbe.answering(root, {asked, draw, refuse, always, also})
//                                           answers while `root`, or one `also` of it, is in sight, or always
//       asked()                             what to find: {rows, setting, seeds, resamples}, or null for nothing
//       draw(asked, found, used)            takes it: `found` has `value`, of points also `x`, for each row;
//                                           `used` says {resamples, seeds}, as `estimates.evaluate` does
//       refuse(sentence)                    says why there is nothing
//     returns {answer(quick), isSeen(), close()}
//   EnvProbe.answering.partsOf(row)         which estimates a row has: value, x; `estimatesOf(rows)` all of them
//   EnvProbe.answering.said(used, resamples)
//                                           in words how few were used; nothing where it was all of them
//   EnvProbe.plotted(rows, found)           the rows as `EnvProbe.plot` takes them
//
// While the bar moves, few seeds and resamples are used, at rest all, which a later move overtakes;
// `root.dataset.settled` is "yes" once all are used for where the bar is.
(() => {
  "use strict";

  const { estimates, bar } = globalThis.EnvProbe;
  const REST = 20; // milliseconds without a move, after which intervals are drawn with all resamples

  // what a row has of an estimate: its value, and of points the one across
  const partsOf = (row) => ["value", "x"].filter((part) => row[part]);

  function plotted(rows, found) {
    return rows.map((row, i) => {
      const { value, x } = found[i];
      const labels = { panel: row.panel, name: row.name, series: row.series, competing: row.competing };
      const printed = { printed: row.printed_value ?? null, printed_x: row.printed_x ?? null, printed_value: row.printed_value ?? null };
      if (row.value.statistic === "track") return { ...labels, x: value.t, value: value.value, low: value.low, high: value.high };
      const own = { ...labels, ...printed, value: value.value, low: value.low, high: value.high };
      return x ? { ...own, x: x.value, x_low: x.low, x_high: x.high } : own;
    });
  }

  const estimatesOf = (rows) => rows.flatMap((row) => partsOf(row).map((part) => row[part]));

  async function find({ rows, setting, seeds, resamples }, options) {
    const { found, ...used } = await estimates.evaluate(estimatesOf(rows), setting, { seeds, resamples, ...options });
    const values = found[Symbol.iterator]();
    return { found: rows.map((row) => Object.fromEntries(partsOf(row).map((part) => [part, values.next().value]))), used };
  }

  const isWhole = (used, resamples) => used.resamples >= resamples && used.seeds === null;

  function said(used, resamples) {
    if (isWhole(used, resamples)) return "";
    return `While you move: ${used.seeds === null ? "" : `${used.seeds} seeds and `}${used.resamples} resamples.`;
  }

  const quickly = new Set(); // what runs few seeds for a figure in sight

  function answering(root, { asked, draw, refuse, always = false, also = [] }) {
    let running = null, isNext = false, timer = 0, shown = "";
    const seen = new Set([root]);

    // While few seeds run, a later move waits for them: a slider that is dragged would else show nothing on its way.
    async function answer(quick = true) {
      clearTimeout(timer);
      const wanted = asked(), key = JSON.stringify(wanted);
      root.dataset.settled = wanted && key !== shown ? "no" : "yes";
      const isSettled = root.dataset.settled === "yes";
      isNext = !isSettled && running?.quick && running.key !== key;
      if (!isSettled && (isNext || running?.key === key)) return;
      running?.overtaken.abort();
      running = null;
      if (isSettled) {
        shown = key;
        return;
      }
      const own = running = { key, quick, overtaken: new AbortController() }, { signal } = own.overtaken;
      try {
        if (always && !estimates.known(estimatesOf(wanted.rows), wanted)) await Promise.allSettled(quickly); // figures in sight come first
        const finding = find(wanted, { quick, signal });
        if (quick && !always) quickly.add(finding);
        const { found, used } = await finding.finally(() => quickly.delete(finding));
        if (signal.aborted) return;
        draw(wanted, found, used);
        shown = isWhole(used, wanted.resamples) ? key : "";
        if (isNext) root.dataset.settled = "no";
        else if (shown) root.dataset.settled = "yes";
        else timer = setTimeout(() => answer(false), REST);
      } catch (error) {
        if (error.name === "AbortError" || signal.aborted) return;
        shown = "";
        root.dataset.settled = "refused";
        refuse(String(error.message || error));
      }
      running = null;
      if (isNext) answer();
    }

    const stop = bar.follow(() => {
      if (seen.size) answer();
      else root.dataset.settled = "no"; // what it shows belongs to a move before; it answers once it is seen
    });
    const watching = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
      if (seen.size) answer();
    }, { rootMargin: "200px" });
    if (always) answer(); // under a bar that a link has moved: it never comes into sight
    else [root, ...also].forEach((one) => watching.observe(one));
    return {
      answer,
      isSeen: () => seen.size > 0,
      close() {
        running?.overtaken.abort();
        clearTimeout(timer);
        watching.disconnect();
        stop();
      },
    };
  }

  Object.assign(answering, { said, isWhole, partsOf, estimatesOf });
  Object.assign(globalThis.EnvProbe, { answering, plotted });
})();
