"""Sentences that follow the reader, on data: what each slot of the book says at six settings, and in a page.

Words follow from where an interval lies, so a rule written anew here says which words belong to the numbers
that `compare` and the live figures find; no browser is needed for that. One page shows that its script says
the same.
"""

import base64
import json
import math
import re
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from built_book import SMALL, engine_page
from daily import nightly
from envprobe_book import compare, run
from envprobe_book.live_figures import estimates
from envprobe_book.live_figures.estimates import Asked
from envprobe_book.live_figures.scripts import SCRIPT, front_end
from envprobe_book.live_figures.telling import families
from envprobe_book.live_figures.words import PLACES, REST, said
from envprobe_core.comparing import STRATA
from envprobe_core.conditions import find_regime

SETTINGS = ((None, 1.5), (15, 2.5), (9, 2.25), (3, 0.75), (0, 1.5), (30, 0.0))
TOLD = re.compile(r"\[\]\(live:([\w-]+)\)(.*?)\[\]\(live:end\)", re.DOTALL)
FIGURE = re.compile(
    r'<div class="live-figure"[^>]*>.*?<script type="application/json">(.*?)</script>', re.DOTALL
)
PART = re.compile(r"\\\{(?:\d\\\.)?(?:n|v|low|high|unit|names)\\\}")


def place_of(own, slot):
    """Where an interval lies, once more."""
    value, low, high = (
        own[part] - (0 if part == "value" else slot.get("base", 0)) for part in ("value", "low", "high")
    )
    if any(map(math.isnan, (value, low, high))):
        return "?"
    if low == 0 == high:
        return "="
    if max(abs(low), abs(high)) < slot.get("within", 0):
        return "~"
    return "0" if low <= 0 <= high else "-" if high < 0 else "+"


def fits(case, places):
    """Whether a case is meant for some places, once more."""
    if case in ("both", REST):
        return case == REST or {"+", "-"} <= set(places)
    if " " in case:
        how, which = case.split()
        held = [one == which for one in places]
        return {"every": all(held), "some": any(held), "no": not any(held)}[how]
    return len(case) == len(places) and all(
        want in (".", one) for want, one in zip(case, places, strict=True)
    )


def is_meant(slot, found, text):
    """Whether a slot's text is one of the wordings that its numbers call for, with the numbers themselves."""
    found = [{part: slot.get("scale", 1) * own[part] for part in ("value", "low", "high")} for own in found]
    places = [place_of(own, slot) for own in found]
    if slot["kind"] == "counts":
        n = sum(one in slot["say"] for one in places)
        return text == (f"all {n}" if n == len(places) else f"{n or 'none'} of {len(places)}")
    if slot["kind"] == "ranks":
        named = [float(one.replace(",", "")) for one in re.findall(r"\(([−\d.,]+)\)", text.replace("−", "-"))]
        return named == sorted(named, reverse=True) and len(named) == len(set(named))
    if slot["kind"] == "groups":
        return all(name in text for name in slot["names"]) or slot.get("every") in text
    if slot["kind"] == "each":  # each name once, its number before it or, in brackets, behind it
        shown = [f"{abs(one['value'] - slot.get('base', 0)):.{slot['digits']}f}" for one in found]
        asked = [
            next(words for case, words in slot["say"].items() if fits(case, [place])) for place in places
        ]
        rounds = all(re.search("[{][nv][}]", words) for words in asked)
        return sorted(re.findall("|".join(slot["names"]), text)) == sorted(slot["names"]) and (
            not rounds or all(number in text.replace(",", "") or "less than" in text for number in shown)
        )
    wording = next(words for case, words in slot["say"].items() if fits(case, places))
    pattern = PART.sub(".+?", re.escape(wording))
    shown = Decimal(abs(found[0]["value"] - slot.get("base", 0)) if "?" not in places else 0)
    number = f"{shown.quantize(Decimal(1).scaleb(-slot['digits']), ROUND_HALF_UP):,f}"
    wants = "{n}" in wording or "{v}" in wording
    least = "less than" in text and not float(number.replace(",", ""))
    return re.fullmatch(pattern, text, re.DOTALL) and (not wants or number in text or least)


def decoded(mark):
    return json.loads(base64.urlsafe_b64decode(mark + "=" * (-len(mark) % 4)))


@pytest.fixture(scope="module")
def told(small_book):
    """Of each executed section the slots of its sentences and titles with their texts, and its figures."""
    sections = {}
    for path in sorted((small_book / "book" / "executed").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        forms = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
        pages = ["".join(form.get("text/html", "")) for form in forms]
        figures = {own["name"]: own for page in pages for own in map(json.loads, FIGURE.findall(page))}
        marks = TOLD.findall("".join("".join(form.get("text/markdown", "")) for form in forms))
        slots = [(decoded(mark), text) for mark, text in marks if not mark.startswith("fixed")]
        titles = [part for own in figures.values() if isinstance(own["title"], list) for part in own["title"]]
        slots += [(part, part["text"]) for part in titles if isinstance(part, dict)]
        sections[path.stem] = slots, figures
    return sections


def estimate_of(row):
    own = row["value"]
    return Asked(own["statistic"], own["measure"], tuple(own["arms"]), tuple(own["worlds"]), own.get("found"))


def readings(slot, figures, found):
    """What a slot reads, of what a section's figures have found."""
    for figure, row, *step in slot["of"]:
        own = found[figure][row]
        yield {part: own[part][step[0]] if step else own[part] for part in ("value", "low", "high")}


@pytest.mark.parametrize(("budget", "threshold"), nightly(SETTINGS, SETTINGS[0], (15, 2.5)))
def test_each_sentence_says_what_its_numbers_call_for(told, budget, threshold):
    """Also what the page shows at first, which is what the notebook said."""
    asked = 0
    for section, (slots, figures) in told.items():
        read = [(slot, text) for slot, text in slots if slot["kind"] not in ("knob", "handle")]
        names = {name for slot, _ in read for name in slot["figures"]} & figures.keys()
        found = {}
        for name in names:
            own = figures[name]
            rows = [estimate_of(row) for row in own["rows"]]
            regimes = {own["setting"].get("regime", "S2")}
            regimes |= {arm["regime"] for row in rows for arm in row.arms if "regime" in arm}
            most = min(find_regime(one).horizon for one in regimes)
            probes = None if budget is None else min(budget, most)
            setting = own["setting"] | {"budget": probes, "threshold": threshold}
            found[name] = estimates.evaluate(rows, setting, own["seeds"], own["resamples"])
        for slot, text in read:
            if not set(slot["figures"]) <= names:
                continue  # a figure of another section's, which is asked there
            here = list(readings(slot, figures, found))
            words = said(slot, here)
            assert is_meant(slot, here, words), (section, slot, here, words)
            assert (budget, threshold) != SETTINGS[0] or words == text, (section, slot, here)
            asked += 1
    assert asked > 50


def test_what_sentences_read_is_what_compare_finds(told):
    """Of the gains of main results, at another setting: the same value and interval, both ways."""
    _, figures = told["main-results"]
    own, strata = figures["gains"], {tuple(worlds): name for name, worlds in STRATA.items()}
    setting = own["setting"] | {"budget": 9, "threshold": 2.25}
    frame = run(policies="simple periodic", seeds=own["seeds"], budgets=9, thresholds=2.25)
    pairs = compare(frame, "simple", "periodic", resamples=own["resamples"])
    gains = pairs.set_index(["protocol", "stratum"])
    rows = [estimate_of(row) for row in own["rows"] if row["value"]["statistic"] == "gain"]
    for row, found in zip(
        rows, estimates.evaluate(rows, setting, own["seeds"], own["resamples"]), strict=True
    ):
        theirs = gains.loc[(row.arms[0]["protocol"], strata[tuple(row.worlds)])]
        ours = [found[part] for part in ("value", "low", "high")]
        assert ours == pytest.approx([theirs[one] for one in ("gain", "gain_low", "gain_high")], abs=1e-9)


def test_every_told_number_is_of_the_small_books_seeds(told):
    assert {own["seeds"] for _, figures in told.values() for own in figures.values()} >= {SMALL["seeds"]}


NUMBERS = st.one_of(st.floats(-60, 60), st.sampled_from([0.0, 0.04, 0.05, -0.25, 1.0, 1234.5, math.nan]))
READING = (
    st.tuples(NUMBERS, NUMBERS, NUMBERS)
    .map(sorted)
    .map(lambda own: dict(zip(("low", "value", "high"), own, strict=True)))
)
FAMILY = st.sampled_from([one for one in families() if set(families()[one]) == set(PLACES)])
MORE = st.fixed_dictionaries(
    {"digits": st.sampled_from([0, 1, 2, 3]), "unit": st.just("point")},
    optional={"within": st.sampled_from([0.0, 0.5]), "base": st.sampled_from([0.0, 0.6])},
)


@st.composite
def slots(draw):
    """A slot of any kind with what it reads."""
    kind = draw(st.sampled_from(["places", "each", "groups", "counts", "ranks"]))
    found = draw(st.lists(READING, min_size=1, max_size=1 if kind == "places" else 4))
    say = families()[draw(FAMILY)] if kind in ("places", "each") else {
        "groups": {"+": "ahead {names}", REST: "elsewhere {names}"}, "counts": {"+": ""}, "ranks": {REST: ""},
    }[kind]  # fmt: skip
    once = "<in all >" if kind == "each" else ""  # what is compared with
    say = {case: re.sub(r"\|[^|]*\|", once, words) for case, words in say.items()}
    say = say if once else {case: re.sub("[<>]", "", words) for case, words in say.items()}
    return {"kind": kind, "say": say, "names": [f"n{at}" for at in range(len(found))]} | draw(MORE), found


@settings(max_examples=400)
@given(slots())
def test_a_slot_says_what_its_numbers_call_for(drawn):
    slot, found = drawn
    text = said(slot, found)
    assert text
    if slot["kind"] != "groups" and not any(math.isnan(part) for own in found for part in own.values()):
        assert is_meant(slot, found, text), (text, slot, found)


@pytest.mark.browser
def test_a_page_says_what_python_says(browse, tmp_path):
    """The script and Python's rule, on slots drawn at random, some of them scaled."""
    cases = []

    @settings(max_examples=500, database=None)
    @given(slots(), st.sampled_from([1, 100]))
    def draw(drawn, scale):
        slot, found = drawn
        cases.append((slot | {"scale": scale}, found))

    draw()
    engine_page(tmp_path, SCRIPT, front_end())
    page = browse(tmp_path.as_uri(), "/page.html")
    finite = json.dumps(cases).replace("NaN", "null")
    texts = page.evaluate(
        """(cases) => JSON.parse(cases).map(([slot, found]) => EnvProbe.telling(slot,
          found.map(({low, value, high}) => ({low: low ?? NaN, value: value ?? NaN, high: high ?? NaN}))))""",
        finite,
    )
    assert texts == [said(*case) for case in cases]
