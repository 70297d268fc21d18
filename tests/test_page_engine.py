"""The engine in a page: the same bits as in Python, for frozen and for random conditions.

In Chromium, and what it computes also in Firefox where there is one.
"""

import base64
import gzip
import json
import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from built_book import engine_page, serving
from daily import nightly
from envprobe_book.page_engine import inline_page_engine, knobs, params_for, to_plain
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import RESERVED, make_condition
from envprobe_core.engine.batch import ARRAYS, simulate, simulate_logged
from envprobe_core.policies import POLICIES, custom_policy, hybrid
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.sources import ROOT
from envprobe_core.worlds import WORLDS
from envprobe_core.zero import zero_accuracy, zero_of
from firefox import FIREFOX, firefox
from golden.cells import MEASURED, RECORDED, digest, read_cell, read_episodes, read_rows

pytestmark = pytest.mark.browser
PAGE = "<!doctype html><meta charset=utf-8><link rel=icon href=data:,><script src=page-engine.js></script>"
PACK = """
const pack = (values) => {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = '';
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return [values.constructor.name, btoa(text)];
};
"""
RUN = """async ({conditions, seeds, logs, zero}) => {
  PACK
  const each = seeds.map((own) => own.map(BigInt));
  const found = await EnvProbe.engine.run(conditions, {each}, {logs, zero});
  return found.map(({logs, ...columns}) => ({
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, pack(values)])),
    logs: Object.fromEntries(
      Object.entries(logs ?? {}).map(([name, {values, shape}]) => [name, [pack(values), shape]])),
  }));
}""".replace("PACK", PACK)
SETTINGS = """async (conditions) => {
  PACK
  return Promise.all(conditions.map(async (one) => pack(await EnvProbe.engine.setting(one))[1]));
}""".replace("PACK", PACK)
A_LITTLE = 200  # bytes a run, for what the browser notes of code that runs often; a result takes thousands
KINDS = {
    "Float64Array": "<f8", "Int32Array": "<i4", "BigUint64Array": "<u8", "Int8Array": "<i1",
    "Uint8Array": "<u1", "Int16Array": "<i2",
}  # fmt: skip


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page engine")
    engine_page(folder)
    return folder


@pytest.fixture
def page(scripts, browse):
    return browse(scripts.as_uri(), "/page.html")


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=pytest.mark.nightly)])
def page_anywhere(scripts, browse, request):
    """The page in Chromium, and in Firefox where there is one."""
    if request.param == "chromium":
        yield browse(scripts.as_uri(), "/page.html")
        return
    if FIREFOX is None:
        pytest.skip("no Firefox here")
    with firefox() as tab:
        tab.goto(f"{scripts.as_uri()}/page.html")
        yield tab


def array(packed):
    kind, text = packed
    return np.frombuffer(base64.b64decode(text), KINDS[kind])


def run(page, cells, logs=False):
    """Run cells with their seeds in the page; return the measures of each, and the logs."""
    conditions = [to_plain(cell) for cell, _ in cells]
    seeds = [[str(seed) for seed in own] for _, own in cells]
    found = page.evaluate(RUN, {"conditions": conditions, "seeds": seeds, "logs": logs})
    return [
        (
            {name: array(column) for name, column in one["columns"].items()},
            {name: array(values).reshape(shape) for name, (values, shape) in one["logs"].items()},
        )
        for one in found
    ]


def measured(cell, seeds, columns):
    sizes = {"n_fields": cell.built.fields, "horizon": cell.regime.horizon}
    constants = {name: np.full(len(seeds), size) for name, size in sizes.items()}
    return digest({"seed": seeds} | constants | columns, MEASURED)


@pytest.mark.parametrize("one_of", nightly([1, 4], 4))
def test_all_frozen_cells_are_what_python_makes_of_them(page_anywhere, one_of):
    rows = read_rows()[::one_of]
    cells = [read_cell(row) for row in rows]
    assert all("setting" not in to_plain(cell) for cell, _ in cells[::40]), "names and numbers say them"
    found = run(page_anywhere, cells)
    differ = [
        row
        for row, (cell, seeds), (columns, _) in zip(rows, cells, found, strict=True)
        if measured(cell, seeds, columns) != row["measured"]
    ]
    assert len(rows) > 2000 / one_of
    assert not differ, f"{len(differ)} of {len(rows)} differ, first {differ[0]}"


def test_all_that_happens_is_logged_as_in_python(page_anywhere):
    rows = [episode["row"] for episode in read_episodes()]
    cells = [read_cell(row) for row in rows]
    for row, (columns, logs) in zip(rows, run(page_anywhere, cells, logs=True), strict=True):
        whole = {"belief", "gold", "staleness", "confidence", "place"}
        values = {
            name: logs[name] if name in whole else logs[name][:, :-1] for name in RECORDED if name in logs
        }
        assert (
            digest(values | {name: columns[name] for name in ("steps", "success")}, RECORDED)
            == row["recorded"]
        )


def test_every_policy_of_every_named_cell_with_default_seeds(page_anywhere):
    """Under the regimes and protocols of the paper, yoked schedules included; and accuracy over time."""
    cells = [
        make_condition(world, policy, regime, protocol)
        for world in WORLDS
        for policy in POLICIES
        for regime in ("S1", "S2", "S3")
        for protocol in PROTOCOLS.values()
    ]
    cells = [(cell, cell.default_seeds()[:40]) for cell in cells]
    differ = [
        cell.key
        for (cell, seeds), (columns, _) in zip(cells, run(page_anywhere, cells), strict=True)
        if not np.array_equal(columns["digest"], simulate(cell, seeds)["digest"])
    ]
    assert not differ
    cell, seeds = (
        make_condition("tooldag", "yoked", "S2", parse_protocol("released:end=success")),
        np.arange(150),
    )
    made, (_, logs) = simulate_logged(cell, seeds), run(page_anywhere, [(cell, seeds)], logs=True)[0]
    np.testing.assert_array_equal(logs["accuracy"], made.accuracy)
    assert {"belief", "probe", "accuracy"} <= set(ARRAYS) & set(logs)


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_the_zero_of_a_condition_and_of_its_yoked_placebo_is_that_of_python(page, protocol):
    """Of any policy's placebo, which the page names by the policy that it replays; both ways to search."""
    rules = parse_protocol(protocol)
    given = [
        *(make_condition(world, policy, protocol=rules) for world in WORLDS for policy in ("voi", "simple")),
        make_condition("tooldag", "simple", "S3", rules, "scribe"),
    ]
    placebo = replace(POLICIES["yoked"], replays="voi")
    given += [replace(given[0], policy=placebo, threshold=None)]
    own = np.arange(70)
    cells = [to_plain(one) for one in given]
    assert cells[-1]["replays"] == "voi"
    asked = {"conditions": cells, "seeds": [own.tolist()] * len(given), "logs": False, "zero": True}
    for condition, found in zip(given, page.evaluate(RUN, asked), strict=True):
        recording = simulate_logged(condition, own)
        expected = zero_accuracy(condition, zero_of(condition), recording)
        np.testing.assert_array_equal(array(found["columns"]["zero"]), expected)
        np.testing.assert_array_equal(array(found["columns"]["accuracy"]), recording.measures["accuracy"])


def test_the_habits_of_later_are_the_same_bits_in_a_page(page):
    """Errors by importance, confidence turned round, luck of one's own in each arm, a report settled once."""
    on = {"importance": 0.7, "contrary": 0.8, "own_noise": True, "critical_once": True, "critical": 0.6}
    agents = [replace(PROFILES[name], name="own", **on) for name in ("typical", "scribe-hesitant")]
    agents.append(replace(PROFILES["careful"], name="half", importance=1.0, contrary=0.5))
    cells = [
        replace(make_condition(world, policy, protocol=protocol, budget=budget), profile=agent)
        for world in WORLDS
        for policy in ("simple", "cd", "yoked", "random", "self-uncertainty")
        for protocol in PROTOCOLS.values()
        for agent in agents
        for budget in (None, 3)
    ]
    cells = [(cell, np.arange(40)) for cell in cells]
    assert all("setting" not in to_plain(cell) for cell, _ in cells[::20]), "names and numbers say them"
    differ = [
        cell.key
        for (cell, seeds), (columns, _) in zip(cells, run(page, cells), strict=True)
        if not np.array_equal(columns["digest"], simulate(cell, seeds)["digest"])
    ]
    assert not differ


def any_condition(luck, world):
    """Draw a condition: of each knob nothing, a name, or a value of one's own."""

    def may(chance=0.4):
        return luck.random() < chance

    condition = {"world": world, "policy": luck.choice(list(POLICIES))}
    condition["protocol"] = luck.choice(list(PROTOCOLS))
    if may():
        turns = luck.sample(knobs.SWITCHES, luck.randint(1, 6))
        turned = ",".join(f"{switch}={luck.choice(knobs.KNOBS[switch])}" for switch in turns)
        condition["protocol"] += f":{turned}"
    condition["regime"] = {"name": luck.choice(list(REGIMES))}
    for level in knobs.LEVELS:
        if may(0.2):
            condition["regime"][level] = luck.randint(0, 2)
    horizon = REGIMES[condition["regime"]["name"]].horizon
    if may(0.3):
        horizon = condition["horizon"] = luck.randint(1, 200)
    if may():
        condition["budget"] = luck.randint(0, horizon)
    if may() and POLICIES[condition["policy"]].has_threshold:
        condition["threshold"] = luck.choice([0, 1.5, luck.uniform(-1, 4)])
    condition["profile"] = {"name": luck.choice(list(PROFILES))}
    for name, default in knobs.HABITS.items():
        if may(0.15) and name not in ("confidence", "spread"):
            kinds = {
                bool: luck.choice([False, True]),
                str: luck.choice(["number", "true"]),
                int: luck.randint(0, 100),
            }
            condition["profile"][name] = kinds.get(type(default), luck.choice([0, 1, luck.random()]))
    if may(0.2):
        condition["profile"] |= {"spread": luck.randint(0, 50), "confidence": luck.randint(50, 100)}
    if may(0.3):
        condition["weights"] = {name: luck.uniform(-1, 2) for name in luck.sample(knobs.WEIGHTS, 2)}
    for name, values in {
        "selector": list(POLICIES),
        "answered": [False, True],
        "given": [False, True],
    }.items():
        if may(0.25):
            condition[name] = luck.choice(values)
    if may(0.2):
        condition["mutation_rate"] = luck.choice([0, 1, luck.random()])
    return condition


@pytest.mark.parametrize("world", WORLDS)
def test_random_combinations_of_knobs_make_pythons_record(page, world):
    luck = random.Random(f"knobs of {world}")
    conditions = [any_condition(luck, world) for _ in range(700)]
    found = page.evaluate(SETTINGS, conditions)
    for condition, text in zip(conditions, found, strict=True):
        wanted = params_for(condition)
        if base64.b64decode(text) != wanted.tobytes():
            made = np.frombuffer(base64.b64decode(text), wanted.dtype)[0]
            parts = [name for name in wanted.dtype.names if made[name] != wanted[name]]
            pytest.fail(f"{parts} differ: {json.dumps(condition)}")


def test_what_names_cannot_say_goes_as_the_record(page):
    joined = hybrid(POLICIES["simple"], POLICIES["oracle"], answered=False)
    weighted = POLICIES["simple"].__class__("own", "own", POLICIES["simple"].rule._replace(c=2.0), ("c",))
    cells = [make_condition("graphnav", "simple").__class__("graphnav", one) for one in (joined, weighted)]
    said = [to_plain(cell) for cell in cells]
    assert (said[0]["policy"], said[0]["selector"], said[0]["answered"]) == ("simple", "oracle", False)
    assert set(said[1]) == {"world", "setting"}
    seeds = np.arange(30)
    for cell, (columns, _) in zip(cells, run(page, [(cell, seeds) for cell in cells]), strict=True):
        np.testing.assert_array_equal(columns["digest"], simulate(cell, seeds)["digest"])
    own = custom_policy("mine", lambda view: view.c)
    assert to_plain(make_condition("graphnav", "simple").__class__("graphnav", own)) is None


FAULTS = {
    "world": ({"world": "mars"}, "There is no world"),
    "policy": ({"world": "tooldag", "policy": "best"}, "There is no policy"),
    "key": ({"world": "tooldag", "speed": 1}, "A condition has no"),
    "budget": ({"world": "tooldag", "budget": 31}, "The budget 31 is not in 0..30."),
    "horizon": ({"world": "tooldag", "horizon": 201}, "The horizon 201 is not in 1..200."),
    "threshold": (
        {"world": "tooldag", "policy": "oracle", "threshold": 1},
        "The policy oracle has no threshold.",
    ),
    "switch": ({"world": "tooldag", "protocol": "paper:end=never"}, "The protocol switch end accepts"),
    "habit": ({"world": "tooldag", "profile": {"omit": 2}}, "The profile's omit 2 is not in 0..1."),
    "level": ({"world": "tooldag", "regime": {"density": 7}}, "density accepts 0, 1, 2, not 7."),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_said_in_a_sentence(page, fault):
    condition, begins = FAULTS[fault]
    script = "(one) => EnvProbe.engine.run([one], '0:4').then(() => '', (error) => error.message)"
    said = page.evaluate(script, condition)
    assert said.startswith(begins)
    assert said.endswith(".")
    assert "\n" not in said
    assert (
        page.evaluate("EnvProbe.engine.run([{world: 'tooldag'}], '0:4').then(([one]) => one.digest.length)")
        == 4
    )


def test_a_reader_does_not_play_the_seeds_that_a_zero_is_learned_on(page):
    script = (
        "(seeds) => EnvProbe.engine.run([{world: 'tooldag'}], seeds).then(() => '', (error) => error.message)"
    )
    for seeds in ("0:4,800499", "800499:800501", [1, RESERVED.start]):
        said = page.evaluate(script, seeds)
        assert said == "Seeds 800000 to 800499 are kept for learning the zero; give others."
    assert not page.evaluate(script, f"{RESERVED.stop}:{RESERVED.stop + 2}")


def test_a_rule_of_the_pages_own_decides_step_by_step(page):
    """Simple, said again in the page, gives Simple's episodes; and what cannot be probed is refused."""
    script = """async () => {
      const condition = {world: 'tooldag', policy: 'simple'};
      const simple = (episodes, row) => {
        const see = (name) => episodes.of(row, 'sight.' + name);
        if (see('used') >= see('budget')) return -1;
        const [c, s, u, d] = ['c', 's', 'u', 'd'].map(see);
        let best = 0;
        const rho = (i) => c[i] + s[i] + u[i] + d[i];
        for (let i = 1; i < see('fields'); i++) if (rho(i) > rho(best)) best = i;
        return rho(best) >= see('threshold') ? best : -1;
      };
      const own = (await EnvProbe.engine.episodes(condition, '0:20')).walk(simple);
      const asked = await EnvProbe.engine.episodes(condition, '0:20');
      for (;;) { asked.propose(); if (!asked.record()) break; asked.advance(asked.decide()); }
      const one = await EnvProbe.engine.play(condition, 7);
      const bad = await EnvProbe.engine.episodes(condition, '0:2');
      let said = '';
      try { bad.propose(); bad.record(); bad.advance([0, 99]); } catch (error) { said = error.message; }
      const digests = [own, asked.measures()].map(({digest}) => Array.from(digest, String));
      return [digests, String(one.digest[0]), said];
    }"""
    (own, asked), seventh, said = page.evaluate(script)
    wanted = [str(one) for one in simulate(make_condition("tooldag", "simple"), np.arange(20))["digest"]]
    assert own == asked == wanted
    assert seventh == wanted[7]
    assert said == "Fields to probe are one an episode, each -1 or in 0..26."


def test_what_is_overtaken_ends_and_says_so(page):
    script = """async () => {
      const all = Array.from({length: 60}, () => ({world: 'graphnav', policy: 'voi'}));
      const stop = new AbortController(), seen = [];
      const first = EnvProbe.engine.run(all, '0:2000', {signal: stop.signal, onprogress: ({share}) => {
        seen.push(share);
        if (seen.length === 3) stop.abort();
      }}).then(() => 'done', (error) => error.name);
      const said = await first;
      const [next] = await EnvProbe.engine.run([{world: 'graphnav'}], '0:5');
      const late = await EnvProbe.engine.run(all, '0:5', {signal: stop.signal}).catch((error) => error.name);
      return [said, seen, next.steps.length, late];
    }"""
    said, seen, rows, late = page.evaluate(script)
    assert (said, rows, late) == ("AbortError", 5, "AbortError")
    assert seen == sorted(seen)
    assert len(seen) == 3


def test_what_is_patient_waits_until_nothing_else_is_to_be_done(page):
    script = """async () => {
      const many = Array.from({length: 40}, () => ({world: 'graphnav', policy: 'voi'})), order = [];
      const run = (name, options) => EnvProbe.engine.run(many, '0:500', options).then(() => order.push(name));
      await EnvProbe.engine.ready('graphnav');
      await Promise.all([run('patient', {patient: true}), run('first', {}), run('second', {})]);
      return order;
    }"""
    assert page.evaluate(script) == ["first", "second", "patient"]


DIGESTS = """async () => {
  const names = Object.keys(EnvProbe.engine.names().worlds);
  const found = await EnvProbe.engine.run(names.map((world) => ({world, policy: 'yoked'})), '0:300');
  return found.map(({digest}) => Array.from(digest, String));
}"""


def wanted():
    return [
        list(map(str, simulate(make_condition(world, "yoked"), np.arange(300))["digest"])) for world in WORLDS
    ]


@pytest.fixture
def serve(tmp_path):
    """The address of a server of the test's own folder."""
    with serving(tmp_path) as address:
        yield address


def test_scripts_of_all_worlds_are_small(scripts):
    packed = {path.name: len(gzip.compress(path.read_bytes())) for path in scripts.glob("*.js")}
    assert len(packed) == 1 + len(WORLDS)
    assert sum(packed.values()) < 150_000, packed


def test_it_works_from_a_server_and_as_one_file(scripts, serve, browse, tmp_path):
    (tmp_path / "one.html").write_text(
        f"<!doctype html><title>one</title><script>{inline_page_engine()}</script>", encoding="utf-8"
    )
    (folder := tmp_path / "deeper").mkdir()
    (folder / "page.html").write_text(PAGE.replace("src=", "src=../"))
    for path in scripts.glob("*.js"):
        (tmp_path / path.name).write_text(path.read_text("utf-8"), encoding="utf-8")
    for base, address in ((tmp_path.as_uri(), "/one.html"), (tmp_path.as_uri(), "/deeper/page.html")):
        assert browse(base, address).evaluate(DIGESTS) == wanted()
    assert browse(serve, "/deeper/page.html").evaluate(DIGESTS) == wanted()


def test_the_book_has_one_engine_for_the_pages_that_ask(tmp_path, browse):
    """Built by Sphinx: a page in a folder reaches it, from a file; a page that does not ask has none."""
    script = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
from sphinx.cmd.build import main
sys.exit(main(["-q", "-W", "-b", "html", "-D", "extensions=live", "-C", "source", "out"]))
"""
    (source := tmp_path / "source" / "deep").mkdir(parents=True)
    (source.parent / "index.rst").write_text("Front\n=====\n\n.. toctree::\n\n   deep/asks\n", "utf-8")
    raw = ".. raw:: html\n\n   <figure data-engine></figure>\n"
    (source / "asks.rst").write_text(f"Asks\n====\n\n{raw}", "utf-8")
    given = {"capture_output": True, "text": True, "timeout": 300, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", script], **given)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    assert "page-engine" not in (out / "index.html").read_text("utf-8")
    assert {path.name for path in (out / "_static").glob("page-engine*")} == {
        "page-engine.js", *(f"page-engine-{world}.js" for world in WORLDS)
    }  # fmt: skip
    assert browse(out.as_uri(), "/deep/asks.html").evaluate(DIGESTS) == wanted()


@pytest.mark.parametrize(
    "refusal",
    [
        "delete globalThis.Worker",
        "globalThis.Worker = function () { throw new DOMException('no', 'SecurityError'); }",
        "globalThis.Worker = function () { setTimeout(() => this.onerror({preventDefault() {}})); }",
        "Object.defineProperty(navigator, 'hardwareConcurrency', {value: 1})",
    ],
)
def test_where_a_worker_is_refused_the_page_does_it_itself(page, refusal):
    page.evaluate(f"() => {{ {refusal}; }}")
    assert page.evaluate(DIGESTS) == wanted()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            "delete globalThis.WebAssembly",
            "This browser runs no WebAssembly, so the page keeps its figures as printed.",
        ),
        (
            "EnvProbe.engine.names().edition = 'other'",
            "The parts of this page are of two editions; reload it.",
        ),
    ],
)
def test_where_the_engine_cannot_run_a_sentence_says_so(page, damage, said):
    page.evaluate(f"() => {{ {damage}; }}")
    ask = "EnvProbe.engine.ready('tooldag').then(() => '', (error) => error.message)"
    assert page.evaluate(ask) == said
    assert page.evaluate("EnvProbe.engine.available()") == ("WebAssembly" not in damage)


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_number_of_runs(scripts, browse):
    """After a thousand runs the machines hold what their largest task needed, and the page no result."""
    page = browse(scripts.as_uri(), "/page.html")
    script = """async (times) => {
      globalThis.Worker = undefined;
      const make = WebAssembly.Memory;
      globalThis.memories ??= [];
      WebAssembly.Memory = function (...given) {
        const one = new make(...given);
        memories.push(one);
        return one;
      };
      for (let i = 0; i < times; i++) {
        const world = ['tooldag', 'objectstate', 'graphnav'][i % 3];
        await EnvProbe.engine.run([{world, policy: 'yoked'}, {world}], '0:64', {logs: i % 2 === 0});
      }
      return memories.reduce((sum, {buffer}) => sum + buffer.byteLength, 0);
    }"""
    cdp = page.context.new_cdp_session(page)

    def held():
        cdp.send("HeapProfiler.collectGarbage")
        found = cdp.send("Runtime.getHeapUsage")
        return found["usedSize"] + found["backingStorageSize"]

    after_ten, held_after_ten = page.evaluate(script, 10), held()
    assert after_ten > 0
    assert page.evaluate(script, 990) == after_ten
    assert held() - held_after_ten < 990 * A_LITTLE
