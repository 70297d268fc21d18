// The paper's tables and the list of claims: a number says beside itself what its link leads to, and a filter
// hides what a reader has not asked for. What is asked stands in the address: ?show=against,agrees&under=paper
//
// A classic script, after the tools of widgets/shared.js (`EnvProbe.dom`). Without it the tables are plain, and a link opens the fold below its table.
(() => {
  "use strict";

  /** @type {HTMLElement | null} */
  const page = document.querySelector(".bd-article");
  /** @type {HTMLElement | null | undefined} */
  const review = page?.querySelector(".review");
  if (!review) return;
  const { element } = globalThis.EnvProbe.dom;

  // the card beside a number

  const card = element("div", { class: "review-card", role: "region", "aria-label": "About this number", tabindex: "0" });
  card.hidden = true;
  review.append(card);
  let owner = null, isPinned = false, isReturning = false, leaving = 0;

  const noteOf = (link) => document.getElementById(link.hash.slice(1));

  function show(link, pin = false) {
    clearTimeout(leaving);
    if (isPinned && !pin) return;
    if (owner !== link) {
      owner?.classList.remove("review-open");
      owner = link;
      link.classList.add("review-open");
      const close = element("button", { type: "button", class: "review-close", "aria-label": "Close" }, "×");
      close.addEventListener("click", hide);
      card.replaceChildren(close, ...[...noteOf(link).childNodes].map((node) => node.cloneNode(true)));
      card.hidden = false;
      const frame = review.getBoundingClientRect(), at = link.getBoundingClientRect();
      const left = Math.min(at.left - frame.left, review.clientWidth - card.offsetWidth);
      card.style.left = `${Math.max(0, left)}px`;
      card.style.top = `${at.bottom - frame.top + 4}px`;
    }
    isPinned = pin;
    card.classList.toggle("review-pinned", pin);
  }

  function hide() {
    if (card.hidden) return;
    const back = card.contains(document.activeElement) ? owner : null;
    owner.classList.remove("review-open");
    card.hidden = true;
    [owner, isPinned] = [null, false];
    isReturning = true; // what has just been closed stays so
    back?.focus({ preventScroll: true });
    isReturning = false;
  }

  function hideSoon() {
    clearTimeout(leaving);
    if (!isPinned) leaving = setTimeout(hide, 250); // the pointer may be on its way to the card
  }

  const linkAt = (event) => event.target.closest?.(".review-cell");
  review.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch" && linkAt(event)) show(linkAt(event));
    else if (card.contains(event.target)) clearTimeout(leaving);
  });
  review.addEventListener("pointerout", (event) => (linkAt(event) || card.contains(event.target)) && hideSoon());
  review.addEventListener("focusin", (event) => linkAt(event) && !isReturning && show(linkAt(event)));
  review.addEventListener("focusout", (event) => !card.contains(event.relatedTarget) && linkAt(event) && hideSoon());
  review.addEventListener("click", (event) => {
    const link = linkAt(event);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(link, true);
    history.replaceState(history.state, "", link.hash);
    card.focus({ preventScroll: true });
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("pointerdown", (event) => {
    if (isPinned && !card.contains(event.target) && !linkAt(event)) hide();
  });

  function follow() {
    const link = location.hash.startsWith("#cell-") && review.querySelector(`.review-cell[href="${CSS.escape(location.hash).replace("\\#", "#")}"]`);
    if (!link) return;
    noteOf(link).closest("details").open = false; // which the browser has opened on its own
    const fold = link.closest("details");
    if (fold) fold.open = true;
    link.scrollIntoView({ block: "center" });
    show(link, true);
  }

  // the filter

  /** @type {NodeListOf<HTMLElement>} */
  const judged = page.querySelectorAll("[data-verdicts]");
  const rows = [...judged].map((root) => ({ root, verdicts: JSON.parse(root.dataset.verdicts) }));
  const protocols = JSON.parse(review.dataset.protocols), groups = JSON.parse(review.dataset.groups); // {word: [sign, verdicts]}
  const asked = new URLSearchParams(location.search);
  const chosen = new Set((asked.get("show") ?? "").split(",").filter((word) => Object.hasOwn(groups, word)));
  let under = Object.hasOwn(protocols, asked.get("under")) ? asked.get("under") : "";

  const ownVerdicts = ({ verdicts: own }) => (under ? [own[under]] : Object.keys(protocols).map((name) => own[name])).filter(Boolean);
  const isIn = (row, word) => ownVerdicts(row).some((verdict) => groups[word][1].includes(verdict));
  const isAsked = (row) => !chosen.size || [...chosen].some((word) => isIn(row, word));
  const cells = rows.filter(({ root }) => root.matches(".review-cell"));
  const claims = rows.filter(({ root }) => root.matches("tr[id]")); // those of the first agent

  // One filter stands above the tables, and one above the list of claims; both say the same.
  function makeFilter(_, place) {
    const said = element("p", { class: "review-count", ...(place === 0 ? { role: "status" } : {}) }); // one is read aloud
    const chips = Object.entries(groups).map(([word, [, verdicts]]) => {
      const chip = element("button", { type: "button", class: "review-chip", "data-group": word, title: verdicts.join("; ") });
      chip.addEventListener("click", () => {
        if (!chosen.delete(word)) chosen.add(word);
        apply();
      });
      return chip;
    });
    const select = element("select", { "aria-label": "Under which protocol" }, element("option", { value: "" }, "under any protocol"),
      ...Object.entries(protocols).map(([name, title]) => element("option", { value: name }, title)));
    select.addEventListener("change", () => {
      under = select.value;
      apply();
    });
    const all = element("button", { type: "button", class: "review-chip review-all" }, "show all");
    all.addEventListener("click", () => {
      chosen.clear();
      apply();
    });
    const root = element("div", { class: "review-filter", role: "group", "aria-label": "Show only numbers and claims with these verdicts" }, ...chips, select, all, said);
    return { root, chips, select, all, said };
  }
  const board = page.querySelector(".scoreboard");
  const filters = [review, ...(board ? [board] : [])].map(makeFilter);

  function apply() {
    hide();
    const left = (list) => list.filter(isAsked).length;
    const told = chosen.size ? `${left(claims)} of ${claims.length} claims, ${left(cells)} of ${cells.length} printed numbers` : `${claims.length} claims, ${cells.length} printed numbers`;
    for (const { chips, select, all, said } of filters) {
      for (const chip of chips) {
        const { group } = chip.dataset, count = claims.filter((row) => isIn(row, group)).length;
        chip.setAttribute("aria-pressed", String(chosen.has(group)));
        chip.hidden = count === 0 && !chosen.has(group);
        chip.replaceChildren(`${groups[group][0]} ${group} `, element("span", { class: "review-number" }, String(count)));
      }
      select.value = under;
      all.hidden = !chosen.size;
      said.textContent = told;
    }
    for (const row of rows) row.root.classList.toggle("review-off", !isAsked(row));
    for (const fold of review.querySelectorAll("details")) if (fold.matches(".review-more")) fold.open ||= chosen.size > 0;
    const isEmpty = (line) => chosen.size > 0 && [...line.querySelectorAll(".review-cell")].every((cell) => cell.matches(".review-off"));
    for (const line of review.querySelectorAll(".review-table tbody tr")) line.classList.toggle("review-off", isEmpty(line));
    for (const part of review.querySelectorAll(".review-part")) part.classList.toggle("review-off", isEmpty(part));
    /** @type {NodeListOf<HTMLTableSectionElement>} */
    const bodies = page.querySelectorAll(".scoreboard tbody");
    for (const body of bodies) {
      let head = null;
      for (const row of body.rows) {
        if (row.matches(".scoreboard-place")) {
          head = row;
          head.classList.toggle("review-off", chosen.size > 0);
        } else if (head && !row.matches(".review-off")) head.classList.remove("review-off");
      }
    }
    const url = new URL(location.href);
    if (chosen.size) url.searchParams.set("show", Object.keys(groups).filter((word) => chosen.has(word)).join(","));
    else url.searchParams.delete("show");
    if (under) url.searchParams.set("under", under);
    else url.searchParams.delete("under");
    url.search = url.search.replaceAll("%2C", ",");
    if (url.href !== location.href) history.replaceState(history.state, "", url.href);
  }

  review.prepend(filters[0].root);
  if (board) board.before(filters[1].root);
  apply();
  addEventListener("load", () => setTimeout(follow));
  addEventListener("hashchange", follow);
})();
