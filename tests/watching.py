"""What a browser must not see while a page of the book is open."""

from envprobe_book.widgets.host import FOLDER
from envprobe_book.widgets.player import lexicon


def watch(page, base):
    """Collect what goes wrong in a tab from now on: requests elsewhere, what is missing, script errors."""
    faults = []

    def note(event, is_fault, told):
        page.on(event, lambda what: faults.append(told(what)) if is_fault(what) else None)

    own = (base, "data:", "blob:")
    note("request", lambda asked: not asked.url.startswith(own), lambda asked: f"another host: {asked.url}")
    aborted = "net::ERR_ABORTED"  # no fault: the next page was opened meanwhile
    note("requestfailed", lambda asked: asked.failure != aborted, lambda asked: f"failed: {asked.url}")
    note("response", lambda got: got.status >= 400, lambda got: f"{got.status}: {got.url}")
    note("console", lambda message: message.type == "error", lambda message: f"console: {message.text}")
    note("pageerror", lambda _: True, lambda error: f"script: {error}")
    return faults


MILD = (  # axe-core's rules whose faults are neither serious nor critical, and which take their time
    "aria-allowed-role", "empty-heading", "empty-table-header", "heading-order", "landmark-unique",
    "landmark-banner-is-top-level", "landmark-contentinfo-is-top-level", "landmark-main-is-top-level",
    "landmark-no-duplicate-banner", "landmark-no-duplicate-contentinfo", "landmark-no-duplicate-main",
    "landmark-one-main", "page-has-heading-one", "presentation-role-conflict", "region", "scope-attr-valid",
    "skip-link", "table-duplicate-name",
)  # fmt: skip


LIKE_OTHERS = """(shown) => {
  if (shown) return document.querySelectorAll("[data-like-others]").forEach((node) => {
    node.removeAttribute("data-like-others");
    node.style.removeProperty("display");
  });
  const seen = new Map(), grounds = new Map([[null, ""]]), kept = new Set();
  const ground = (node) => {
    if (!grounds.has(node)) {
      const look = getComputedStyle(node);
      const own = [look.backgroundColor, look.backgroundImage, look.opacity, look.filter, look.position];
      grounds.set(node, [ground(node.parentElement), ...own].join());
    }
    return grounds.get(node);
  };
  const holds = (node) => [...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim());
  const texts = [...document.body.querySelectorAll("*")]
    .filter((node) => holds(node) || node.matches("input, select, textarea"));
  for (const node of texts) {
    const look = getComputedStyle(node);
    const own = [look.color, look.fontSize, look.fontWeight, look.textShadow, look.display, look.visibility];
    const kind = [ground(node), ...own].join();
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (seen.get(kind) <= 5) for (let up = node; up && !kept.has(up); up = up.parentElement) kept.add(up);
  }
  for (const node of texts.filter((one) => !kept.has(one))) {
    let top = node;
    while (!kept.has(top.parentElement)) top = top.parentElement;
    top.dataset.likeOthers = "";
    top.style.setProperty("display", "none", "important");
  }
}"""
"""Hides, or shows again, text in the colours and the size of five others, on grounds like theirs."""


AT_REST = """() => document.getAnimations().every(({ playState }) => playState !== "running")"""
"""Nothing changes; Chromium lists what has finished for as long as it is asked at every frame."""


def serious_in_both_themes(page, context):
    """What axe-core calls serious or critical, of all else and of colours in light and dark."""
    found = serious(page, context, leave_out=(*MILD, "color-contrast"))  # before any text is hidden
    for theme in ("light", "dark"):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        page.wait_for_function(AT_REST)  # colours change little by little
        page.evaluate(LIKE_OTHERS, False)
        found += serious(page, context, ["color-contrast"])
        page.evaluate(LIKE_OTHERS, True)
    return found


def serious(page, context=None, only=None, leave_out=MILD):
    """What axe-core calls serious or critical, by all rules that matter or some only."""
    from axe_playwright_python.sync_playwright import Axe

    # `preload` would ask for style sheets again, which a browser refuses to a file
    options = {"resultTypes": ["violations"], "selectors": False, "preload": False}
    options |= {"runOnly": only} if only else {"rules": {rule: {"enabled": False} for rule in leave_out}}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [
        (fault["id"], node["html"][:200])
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def set_formulas(page):
    """Wait until the formulas of a page are set; return how many were written, and check each."""
    written = page.locator(".math").count()
    if written:
        page.wait_for_function("window.MathJax?.startup?.promise !== undefined")
        page.evaluate("() => MathJax.startup.promise")
        assert page.locator("mjx-container").count() >= written
        wrong = page.locator("mjx-merror, .MathJax_Error")
        assert wrong.count() == 0, wrong.first.inner_text()
    return written


TELL = "([lexicon, recorded]) => JSON.parse(JSON.stringify(tellPair(lexicon, recorded)))"


def tell(page, recorded):
    """What the book's one teller of episodes makes of a recording, in a tab beside a page."""
    beside = page.context.new_page()
    beside.add_script_tag(content=(FOLDER / "episode.js").read_text(encoding="utf-8"))
    told = beside.evaluate(TELL, [lexicon(), recorded])
    beside.close()
    return told
