// Boxes that scroll sideways (wide tables, code, formulas) can be reached and scrolled by keyboard: those that
// are wider than their place take the focus and have a name; those that fit do not stop the tab key.
(() => {
  const BOXES = ".bd-article :is(div, pre, figure, mjx-container)";

  function scrolls(box) {
    return box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
  }

  function nameOf(box) {
    const caption = box.querySelector("caption")?.textContent.trim();
    if (caption) return `Table: ${caption}`;
    if (box.matches("pre") || box.querySelector("pre")) return "Code";
    return box.querySelector("table") ? "Table" : box.querySelector("mjx-container") ? "Formula" : "Figure";
  }

  function mark(box) {
    if (scrolls(box)) {
      if (box.hasAttribute("aria-label") && !box.dataset.scrolls) return; // it has a name of its own
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", `${nameOf(box)} (scrolls sideways)`);
      box.dataset.scrolls = "yes";
    } else if (box.dataset.scrolls) {
      for (const name of ["tabindex", "role", "aria-label", "data-scrolls"]) box.removeAttribute(name);
    }
  }

  function markAll() {
    document.querySelectorAll(BOXES).forEach(mark);
  }

  let waiting = 0;
  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(markAll, 100);
  }

  function start() {
    markAll();
    // the window is another, a folded cell is opened, a formula in a table is set only when it comes into sight
    const watching = new ResizeObserver(soon);
    for (const box of document.querySelectorAll(`.bd-article, ${BOXES} > :first-child`)) watching.observe(box);
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true);
    window.MathJax?.startup?.promise?.then(soon);
  }

  if (document.readyState === "complete") start();
  else window.addEventListener("load", start);
})();

// The first link of a page skips its head and the buttons of the theme as well: it leads to the text.
(() => {
  /** @type {HTMLAnchorElement | null} */
  const skip = document.querySelector("#pst-skip-link a");
  const text = document.querySelector(".bd-article section[id]");
  if (skip && text) skip.href = `#${text.id}`;
})();

// From a folder a browser opens the file of a table or figure in place of saving it. So the page has its text from
// the script that stands beside the file, and saves that.
(() => {
  if (location.protocol !== "file:") return;

  function save(name, text) {
    const address = URL.createObjectURL(new Blob([text]));
    Object.assign(document.createElement("a"), { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && /** @type {HTMLAnchorElement | null} */ (event.target.closest(".take-along a[download]"));
    if (!link) return;
    const script = Object.assign(document.createElement("script"), { src: `${link.href}.js` });
    script.addEventListener("file", (/** @type {CustomEvent} */ { detail }) => save(link.textContent, detail));
    script.addEventListener("load", () => script.remove());
    document.head.append(script);
    event.preventDefault();
  });
})();

// A word of the glossary says what it means while the pointer or the focus is on it.
(() => {
  const TERMS = 'a[title][href*="#term-"]';
  let tip = null;

  function hide() {
    tip?.remove();
    tip = null;
  }

  function show(event) {
    const link = event.target.closest?.(`${TERMS}, a[data-definition]`);
    if (!link) return hide();
    if (link.title) {
      link.dataset.definition = link.title;
      link.removeAttribute("title"); // or the browser shows it a second time
    }
    hide();
    tip = document.createElement("div");
    tip.id = "definition";
    tip.setAttribute("role", "tooltip");
    tip.textContent = link.dataset.definition;
    link.setAttribute("aria-describedby", tip.id);
    document.body.append(tip);
    const place = link.getBoundingClientRect();
    const left = Math.min(place.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    const above = place.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
    tip.style.top = `${(above > 0 ? above : place.bottom + 6) + window.scrollY}px`;
  }

  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();

// The search page also finds the paper's items and printed numbers, and lists them first.
(() => {
  const results = document.getElementById("search-results");
  if (!results) return;
  // a page that was opened as a file may not read the others for excerpts
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const wanted = query.toLowerCase().replace(/\bof the paper\b|["']/g, "").trim().replace(/\s+/g, " ");
  if (!wanted || typeof PAPER_WORDS === "undefined") return;
  const inside = new RegExp(`(^|[^\\p{L}\\p{N}.])${wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}($|[^\\p{L}\\p{N}])`, "u");
  const found = PAPER_WORDS.filter(([words]) => words === wanted || inside.test(words));
  if (!found.length) return;
  const box = document.createElement("section");
  box.id = "paper-results";
  const title = document.createElement("h3");
  title.textContent = "In the paper";
  const list = document.createElement("ul");
  for (const [, text, address] of found) {
    const link = document.createElement("a");
    link.href = address;
    link.textContent = text;
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  box.append(title, list);
  results.before(box);
})();

// A long table shows its first rows; a button shows all of them. Without scripts, and in print, all are there.
(() => {
  const SHOWN = 12;

  function fold(table) {
    const rows = [...table.tBodies[0].rows], later = rows.slice(SHOWN);
    const lead = (row) => row.cells[0].textContent.trim();
    // groups of rows (their name stands in the first row of each) of which nothing is in sight
    const grouped = rows.some((row) => !lead(row)) || new Set(rows.map(lead)).size < rows.length;
    const seen = new Set(rows.slice(0, SHOWN).map(lead));
    const unseen = new Set(grouped ? later.map(lead).filter((name) => name && !seen.has(name)) : []);
    const also = unseen.size && unseen.size < 4 ? `, with ${[...unseen].join(", ")}` : "";
    const button = document.createElement("button");
    button.className = "all-rows";
    button.type = "button";
    function show(open) {
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? `first ${SHOWN} rows` : `all ${rows.length} rows${also}`;
      for (const row of later) row.classList.toggle("later-row", !open);
    }
    button.addEventListener("click", () => show(button.getAttribute("aria-expanded") === "false"));
    show(false);
    const box = table.parentElement;
    (box.dataset.scrolls || /auto|scroll/.test(getComputedStyle(box).overflowX) ? box : table).after(button);
  }

  /** @type {NodeListOf<HTMLTableElement>} */
  const tables = document.querySelectorAll(".bd-article table.table, .bd-article table.dataframe");
  tables.forEach((table) => {
    const leads = table.querySelector("td a[href^='#']"); // rows that set a figure of the page are all in sight
    if (table.tBodies[0]?.rows.length > SHOWN + 1 && !leads && !table.closest(".scoreboard")) fold(table);
  });
})();

// A link opens what is folded where it leads, and a search what is folded around the words that it marks.
(() => {
  function unfold(place) {
    const closed = [];
    for (let at = place; at; at = at.parentElement) if (at.matches("details:not([open])")) closed.push(at);
    for (const fold of closed) fold.open = true;
    return closed.length > 0;
  }

  function open() {
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { /* no name of a place */ }
    const place = document.getElementById(name);
    /** @type {HTMLDetailsElement | null | undefined} */
    const own = place?.closest("section")?.querySelector(":scope > details:not([open])");
    if (own) own.open = true;
    if (unfold(place) || own) place.scrollIntoView();
  }

  addEventListener("hashchange", open);
  addEventListener("load", () => setTimeout(() => {
    document.querySelectorAll(".more-fold:not([open]) .highlighted").forEach(unfold);
  }, 100)); // the words are marked a little after the page is there
  open();
})();

// Two levels of reading: the story, in which all that is titled "More" is folded, and everything. A page keeps its
// choice, and a print shows what is chosen.
(() => {
  const KEY = `envprobe-reading ${location.pathname}`, ALL = "all";
  /** @type {NodeListOf<HTMLDetailsElement>} */
  const folds = document.querySelectorAll(".more-fold");
  if (!folds.length) return;
  const button = document.createElement("button");
  button.className = "reading-level";
  button.type = "button";

  function read(level) {
    const isAll = level === ALL;
    document.documentElement.classList.toggle("reading-all", isAll);
    button.setAttribute("aria-pressed", String(isAll));
    button.textContent = isAll ? "Read the story" : `Read all: ${folds.length} more ${folds.length === 1 ? "part" : "parts"}`;
    for (const fold of folds) fold.open = isAll;
  }

  function kept() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }

  button.addEventListener("click", () => {
    const level = button.getAttribute("aria-pressed") === "true" ? "story" : ALL;
    try { localStorage.setItem(KEY, level); } catch { /* the choice stays with this page */ }
    read(level);
  });
  folds[0].before(button);
  if (kept() === ALL) read(ALL);
  else read("story");
})();

// Paper is light, and shows what is folded but for "More" parts of a story; behind a print the page is as it was.
(() => {
  const root = document.documentElement;
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  let theme = null;

  addEventListener("beforeprint", () => {
    if (theme !== null) return; // a print that has not ended
    theme = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    opened = [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details:not([open])"))]
      .filter((fold) => !fold.closest(".more-fold:not([open])"));
    for (const fold of opened) {
      fold.open = true;
      fold.dispatchEvent(new Event("toggle")); // what fills itself when it is opened: a browser's own comes too late
    }
  });

  addEventListener("afterprint", () => {
    if (theme === null) return;
    for (const fold of opened) fold.open = false;
    root.dataset.theme = theme;
    [opened, theme] = [[], null];
  });
})();

// Cells of a table that a phone shows row by row carry their column's head (paper.css), and the first one of a row
// in which it is not written again what stands above it.
(() => {
  function name() {
    for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll(".bd-article table.stacks"))) {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
      let above = "";
      for (const row of table.tBodies[0]?.rows ?? []) {
        [...row.cells].forEach((cell, place) => (cell.dataset.head = heads[place] ?? ""));
        const first = row.cells[0].textContent.trim();
        if (!first) row.cells[0].dataset.above = above;
        above = first || above;
      }
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", name);
  else name();
})();
