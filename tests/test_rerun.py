"""What the engine ran is listed, and a page runs the list again and names what differs."""

import json
import sys

import numpy as np
import pytest

from envprobe_book.analyses.atlas import WIDE_BOX, sample_profiles
from envprobe_book.page_engine import HERE, inline_page_engine
from envprobe_book.reproduce.reruns import joined, read_ledger, unpacked
from envprobe_core import run
from envprobe_core.conditions import Condition, make_condition
from envprobe_core.engine.batch import EpisodeBatch, simulate
from envprobe_core.experiment import run_frame
from envprobe_core.ledger import ENVIRONMENT, condensed
from envprobe_core.policies import POLICIES, custom_policy, hybrid
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.regimes import REGIMES
from envprobe_core.sources import ROOT
from envprobe_core.worlds import WORLDS

RECEIPT = "[data-receipt]"


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    path = tmp_path / "ledger"
    monkeypatch.setenv(ENVIRONMENT, str(path))
    return path


@pytest.fixture
def show(tmp_path, browse, monkeypatch):
    """Open a page, from a file, that holds the lists of some sections."""

    def opened(*records, whole=False):
        monkeypatch.setattr(sys, "path", [str(ROOT / "book" / "_ext"), *sys.path])
        from rerun import as_html, part

        parts = [part(record, f"section-{place}", "0" * 64) for place, record in enumerate(records)]
        scripts = (inline_page_engine(), (HERE / "rerun.js").read_text("utf-8"))
        text = "".join(f"<script>{script}</script>" for script in scripts)
        head = "<!doctype html><meta charset=utf-8><title>run</title><link rel=icon href=data:,>"
        (tmp_path / "page.html").write_text(head + as_html(parts, whole=whole) + text, encoding="utf-8")
        return browse(tmp_path.as_uri(), "/page.html")

    return opened


def receipt(page):
    page.locator("[data-run-here]").click()
    return json.loads(page.locator(RECEIPT).get_attribute("data-receipt"))


def damaged(record, place):
    """The record with one digit of one digest changed; and the digest that stood there."""
    import base64
    import gzip

    content = unpacked(record)
    kept = content["runs"][place][3]
    content["runs"][place][3] = f"{int(kept, 16) ^ 1:016x}"
    text = json.dumps(content).encode()
    return record | {"packed": base64.b64encode(gzip.compress(text)).decode()}, kept


def test_nothing_is_noted_where_no_ledger_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    simulate(make_condition("tooldag", "simple"), np.arange(3))
    assert read_ledger(tmp_path / "ledger")["cells"] == 0


def test_a_digest_tells_seeds_apart_and_ranges_add_up():
    seeds, digests = np.arange(40), np.random.default_rng(1).integers(2**64, size=40, dtype=np.uint64)
    whole, swapped = condensed(seeds, digests), digests.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    assert condensed(seeds[::-1], digests[::-1]) == whole != condensed(seeds, swapped)
    parts = [(first, first + 10, condensed(seeds[first : first + 10], digests[first : first + 10]))
             for first in (20, 0, 30, 10)]  # fmt: skip
    assert joined([*parts, parts[0]]) == [(0, 40, whole)]


def test_processes_and_pieces_do_not_change_the_list(ledger):
    given = {"worlds": "tooldag", "policies": "simple yoked", "protocols": "released"}
    run(**given, seeds="0:60")
    alone = read_ledger(ledger)
    ledger.unlink()
    run(**given, seeds="20:60", jobs=2)
    run(**given, seeds="0:20")
    assert read_ledger(ledger) == alone
    assert alone["episodes"] == 120


def test_what_a_list_cannot_hold_is_named(ledger):
    EpisodeBatch(make_condition("tooldag", "simple"), np.arange(4))
    own = custom_policy("mine", lambda view: np.zeros(len(view.c)))
    run("tooldag", [own], protocols="paper", seeds="0:3")
    kinds = dict(read_ledger(ledger)["elsewhere"])
    assert kinds["episodes taken step by step"] == 4
    assert kinds["episodes of a policy in Python"] >= 3


@pytest.mark.browser
def test_every_digest_of_a_page_equals_pythons(ledger, show):
    run(tuple(WORLDS), seeds="0:12", regimes="S1 S2", protocols="paper released:end=success")
    run(
        "graphnav",
        [hybrid(POLICIES["simple"], POLICIES["oracle"])],
        protocols="observed",
        seeds="5:9",
        budgets=3,
        thresholds=0.5,
    )
    agents = sample_profiles(8, WIDE_BOX)
    assert len({agent.own_noise for agent in agents}) == 2
    run_frame(
        [
            Condition(world, POLICIES["simple"], REGIMES["S2"], PROTOCOLS[rule], agent)
            for world in WORLDS
            for rule in ("paper", "released")
            for agent in agents
        ],
        np.arange(6),
    )
    record = read_ledger(ledger)
    page = show(record)
    found = receipt(page)
    assert found["differ"] == 0
    assert found["differences"] == []
    assert (found["cells"], found["episodes"]) == (record["cells"], record["episodes"])
    assert found["cells"] > 200


@pytest.mark.browser
def test_a_damaged_digest_is_named_with_both_and_the_receipt_is_saved(ledger, show, tmp_path):
    run("tooldag objectstate", "simple random", protocols="paper", seeds="0:30")
    record = read_ledger(ledger)
    wrong, kept = damaged(record, 1)
    page = show(record, wrong, whole=True)
    found = receipt(page)
    assert found["differ"] == 1
    assert found["cells"] == 8
    (fault,) = found["differences"]
    assert fault["here"] == kept != fault["printed"]
    assert page.locator(".rerun-faults li").count() == 1
    told = page.locator(".rerun-faults li").inner_text()
    assert fault["here"] in told
    assert fault["printed"] in told
    assert fault["condition"]["policy"] in told
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the receipt").click()
    download.value.save_as(tmp_path / "receipt.json")
    saved = json.loads((tmp_path / "receipt.json").read_text())
    assert [len(section["digests"]) for section in saved["sections"]] == [4, 4]
    assert saved["differ"] == 1
    assert saved["book"]
    assert "Chrom" in saved["browser"]


@pytest.mark.browser
def test_a_run_is_cancelled_and_can_be_started_again(ledger, show):
    run("tooldag", "simple", protocols="paper", seeds="0:20000")
    page = show(read_ledger(ledger))
    page.evaluate("""() => {
        document.querySelector('[data-run-here]').click();
        document.querySelector('.rerun-cancel').click();
    }""")
    page.get_by_text("Cancelled; nothing was compared.").wait_for()
    assert page.locator(RECEIPT).count() == 0
    assert receipt(page)["differ"] == 0
