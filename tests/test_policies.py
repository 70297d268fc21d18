"""Every policy on hand-worked sights: which rows probe, which field, at which score."""

import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from envprobe_core import policies
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import NONE, TABLE, new
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import episode_dtype, kernel_params
from envprobe_core.engine.kernel import STALENESS_TERM, UNCERTAINTY_TERM
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, custom_policy, find_policy, gates, joining, voi
from envprobe_core.policies.base import Policy, Rule
from envprobe_core.policies.custom import rule_of
from envprobe_core.protocols import PAPER, RELEASED, parse_protocol
from envprobe_core.sources import ROOT

STALENESS = np.array([[0, 5, 10, 40], [0, 0, 0, 0]])
CONFIDENCE = np.array([[100, 90, 60, 75], [100, 100, 100, 100]])
C = np.array([[1.0, 0.5, 0.25, 0.0], [0.5, 0.0, 0.25, 0.0]])
D = np.array([[1.0, 0.5, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])


@kernel
def choose(setting, block, own, fields):
    for row in range(len(block)):
        fields[row] = gates.choose(setting, block[row], own)


def episodes(**changes):
    """Two rows of four fields: the second row is calm (nothing critical, fresh, certain)."""
    block = new(episode_dtype("tooldag"), 2)
    sight = {"fields": 4, "step": 3, "horizon": 30, "budget": 7, "used": [0, 2], "threshold": 1.5, "draw": 0}
    sight |= {"action": [2, -1], "scheduled": NONE, "value": [[0, 1, 2, -1], [1, 1, 1, 1]], "c": C, "d": D}
    sight |= {"staleness": STALENESS, "confidence": CONFIDENCE}
    truth = {"gold": [[0, 2, 2, 3], [1, 1, 1, 1]], "weight": [[9.0, 1.0, 5.0, 4.0], [1.0, 1.0, 1.0, 1.0]]}
    truth |= {name: changes.pop(name) for name in truth.keys() & changes.keys()}
    sight |= changes
    sight |= {
        "s": STALENESS_TERM[np.array(sight["staleness"])],
        "u": UNCERTAINTY_TERM[np.array(sight["confidence"])],
    }
    for record, values in ((block.sight, sight), (block, truth)):
        for name, value in values.items():
            array = record[name][:, :4] if record[name].ndim == 2 else record[name]
            array[:] = value
    return block


def decide(policy, protocol=PAPER, **changes):
    """Return what came of two sights: each row's probed field or None, and the sights."""
    asked = POLICIES[policy] if isinstance(policy, str) else policy
    block, fields = episodes(**changes), np.zeros(2, dtype=np.int64)
    choose(kernel_params(Condition("tooldag", asked, protocol=protocol)), block, rule_of(asked.score), fields)
    return [None if field == NONE else field for field in fields.tolist()], block.sight


def outcome(policy, protocol=PAPER, **changes):
    return decide(policy, protocol, **changes)[0]


@pytest.mark.parametrize(
    ("name", "rho", "probed"),
    [
        # first row: c 1 .5 .25 0, s 0 .5 1 1, u 0 .1 .4 .25, d 1 .5 1 0
        ("simple", [2.0, 1.6, 2.65, 1.25], 2),
        ("minus-c", [1.0, 1.1, 2.4, 1.25], 2),
        ("minus-s", [2.0, 1.1, 1.65, 0.25], 0),
        ("minus-u", [2.0, 1.5, 2.25, 1.0], 2),
        ("minus-d", [1.0, 1.1, 1.65, 1.25], 2),
        ("cd", [2.0, 1.0, 1.25, 0.0], 0),
        ("placebo", [2.0, 1.6, 2.65, 1.25], 2),
        ("judge", [2.0, 1.6, 2.65, 1.25], 2),
    ],
)
def test_additive_scores(name, rho, probed):
    fields, sight = decide(name)
    np.testing.assert_allclose(sight.rho[0, :4], rho, atol=1e-12)
    assert fields == [probed, None]
    assert sight.highest[0] == pytest.approx(max(rho))


def test_a_score_adds_left_to_right():
    assert STALENESS_TERM[STALENESS[0]].tolist() == [0.0, 0.5, 1.0, 1.0]
    assert UNCERTAINTY_TERM[CONFIDENCE[0]].tolist() == [0.0, 1 - 0.9, 1 - 0.6, 0.25]
    c, d = np.full((2, 4), 0.1), np.full((2, 4), 0.3)
    expected = ((c + STALENESS_TERM[STALENESS]) + UNCERTAINTY_TERM[CONFIDENCE]) + d
    np.testing.assert_array_equal(decide("simple", c=c, d=d)[1].rho[:, :4], expected)


FLAT = {"c": 0.5, "d": 1.0}
LEVEL, LAST = (7 << 32) // 30, 3 << 62  # of B/H; a word whose upper half chooses the last of four fields
DRAWS = np.array([LAST | (LEVEL - 1), LAST | LEVEL], dtype=np.uint64)
EDGE, LOW = [[100, 100, 70, 100], [100, 69, 69, 100]], [[100, 100, 50, 100], [100, 49, 80, 100]]
VETOED = {"d": [[1.0, 0.5, 0.0, 0.0], [0.0] * 4], "c": [[0.0, 0.0, 1.0, 0.0], [1.0] * 4], "confidence": 100}
BLOCKED = {  # no score reaches the threshold
    "confidence": [[100, 69, 70, 10], [69, 100, 100, 69]],
    "d": [[1.0, 1.0, 1.0, 1.0], [1.0, 0.5, 0.5, 1.0]],
    "c": [[0.9, 0.6, 0.3, 0.0], [1.0, 0.9, 0.8, 0.0]],
    "staleness": np.zeros((2, 4), int),
    "threshold": 9.0,
}
WRONG = [[9, 9, 9, 9], [9, 1, 1, 1]]
DECISIONS = {
    "the gate includes its threshold, the first field wins a tie": [
        ("cd", FLAT, [0, 0]),
        ("cd", FLAT | {"threshold": [1.5, 1.5000001]}, [0, None]),
    ],
    "Random probes at rate B/H": [
        ("random", {"draw": DRAWS}, [3, None]),
        ("random", {"draw": 0}, [0, 0]),
        ("random", {"draw": DRAWS, "budget": [0, 30]}, [None, 3]),
    ],
    "Periodic fires at the last step of every period, fields in turn: probes used so far": [
        *(("periodic", {"step": step}, [0, 2]) for step in (3, 7, 27)),
        *(("periodic", {"step": step}, [None, None]) for step in (0, 4)),
        ("periodic", {"used": [5, 4]}, [1, 0]),  # back to the first field
        ("periodic", {"protocol": RELEASED}, [3, 0]),  # the stalest
        ("periodic", {"budget": [0, 1]}, [None, None]),
        ("periodic", {"step": 29, "horizon": 31, "budget": [1, 31]}, [None, 2]),
        ("periodic", {"step": 30, "horizon": 31, "budget": [1, 31]}, [0, 2]),
        ("periodic", {"step": 0, "horizon": 2, "budget": [5, 2]}, [0, 2]),
        ("no-probe", {"budget": 30}, [None, None]),
    ],
    "Self-Uncertainty takes the least confident below alpha; the public code's asks for less, or risk": [
        ("self-uncertainty", {}, [2, None]),
        ("self-uncertainty", {"confidence": EDGE}, [None, 1]),
        ("self-uncertainty", {"confidence": LOW, "protocol": RELEASED}, [None, 1]),
        ("self-uncertainty", {"confidence": LOW, "protocol": RELEASED, "risk": [1, 0]}, [2, 1]),
        ("self-uncertainty", {"confidence": [[100] * 4, [100, 99, 100, 100]], "risk": [1, 0]}, [None, None]),
    ],
    "Judge vetoes a probe of no use for the action, and forces a doubted blocker among the first three": [
        ("judge", VETOED, [None, None]),
        ("simple", VETOED, [2, None]),
        # row 0, rho: 1.90, 1.91, 1.60, 1.90; field 1 leads, doubted (69) and blocking
        # row 1, rho: 2.31, 1.40, 1.30, 1.31; field 0 leads, doubted and blocking
        ("judge", BLOCKED, [1, 0]),
    ],
    "oracles probe the first, or the heaviest, wrong field": [
        ("oracle", {}, [1, None]),
        ("oracle-tw", {}, [3, None]),
        ("oracle-tw", {"gold": WRONG}, [0, 0]),
        ("oracle-tw", {"gold": WRONG, "weight": 0.0}, [0, 0]),
    ],
    "a replay follows its schedule": [
        ("yoked", {"scheduled": [2, -1]}, [2, None]),
        ("yoked", {"scheduled": [0, 3]}, [0, 3]),
    ],
    "of 30 steps late policies keep the last 7 for the first row, for the second, which has spent 2, 5": [
        (policy, {"step": step}, [*fields[:opens], *[None] * (2 - opens)])
        for policy, fields in (("late", [0, 2]), ("late-stalest", [3, 0]))
        for step, opens in ((22, 0), (23, 1), (24, 1), (25, 2), (29, 2))
    ],
}


@pytest.mark.parametrize("promise", DECISIONS)
def test_decisions(promise):
    for policy, changes, fields in DECISIONS[promise]:
        assert outcome(policy, **changes) == fields, (policy, changes)


def test_the_register():
    simple = ["simple", "minus-c", "minus-s", "minus-u", "minus-d", "cd", "judge"]
    values = ["voi", "voi-accuracy", "voi-success"]
    paper = ["no-probe", "random", "periodic", "self-uncertainty", *simple]
    paper += ["oracle", "oracle-tw", "placebo", "yoked"]
    assert list(POLICIES) == [*paper, *values, "late", "late-stalest", "late-mismatch"]
    assert [p.name for p in POLICIES.values()] == list(POLICIES)
    assert list(policies.OF_THE_PAPER) == paper
    bound = [name for name, policy in POLICIES.items() if policies.rules_for(policy) is not None]
    assert bound == [*values, "late-mismatch"]
    for attribute, names in {
        "sees_gold": ["oracle", "oracle-tw"],
        "has_threshold": [*simple, "placebo", "yoked"],
        "replays": ["yoked"],
    }.items():
        assert [name for name, policy in POLICIES.items() if getattr(policy, attribute)] == names, attribute
    assert [name for name, policy in POLICIES.items() if not policy.answered] == ["placebo", "yoked"]
    assert POLICIES["yoked"].replays == "simple"
    assert POLICIES["cd"].terms == ("c", "d")
    assert POLICIES["judge"].terms == POLICIES["yoked"].terms == policies.TERMS == ("c", "s", "u", "d")


@pytest.mark.parametrize(
    ("name", "scaled"), [("simple", 1.5), ("minus-c", 1.125), ("cd", 0.75), ("judge", 1.5)]
)
def test_thresholds_scale_with_the_kept_terms_where_the_protocol_says_so(name, scaled):
    assert POLICIES[name].scaled_threshold(1.5, RELEASED) == scaled
    assert POLICIES[name].scaled_threshold(1.5, PAPER) == 1.5
    turned = parse_protocol("paper:threshold=kept-terms")
    assert POLICIES[name].scaled_threshold(3.0, turned) == 2 * scaled
    assert POLICIES["random"].scaled_threshold(1.25, RELEASED) == 1.25


def test_names_that_are_unknown_or_taken_and_a_readers_own_score():
    with pytest.raises(
        InputError, match=r"unknown policy 'simpel'; accepted: no-probe, .*late-mismatch \(Late mismatch\)$"
    ):
        find_policy("simpel")
    with pytest.raises(InputError, match=r"policy name 'cd' is taken; taken names: no-probe, "):
        custom_policy("cd", lambda seen: seen.c)
    own = custom_policy("mine", lambda seen: 2 * seen.c + seen.u)
    assert (own.name, own.title, own.terms) == ("mine", "mine", policies.TERMS)
    assert outcome(own) == [0, None]
    assert own.scaled_threshold(1.5, RELEASED) == 1.5
    assert replace(own, name="other").answered


OWN = {  # of a module that is accepted beside the others
    "POLICIES": (Policy("doubted", "Doubted", Rule(14)),),
    "KINDS": {14: "Probe a doubted field"},
    "MEMORY": {"asked": TABLE},
    **{name: getattr(voi, name) for name in ("opens", "begin", "notice")},
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"MEMORY": None, "begin": None, "notice": None}, None),
        ({"POLICIES": None}, "lacks POLICIES"),
        ({"begin": None}, "lacks begin"),
        ({"MEMORY": None}, "lacks MEMORY"),
        ({"KINDS": None, "opens": None, "notice": None}, "lacks KINDS, opens, notice"),
        ({"notice": voi.opens}, r"notice\(.*, reader\) takes 4; accepted is notice\(params, episode\)"),
        ({"POLICIES": Policy("doubted", "Doubted", Rule(14))}, r"POLICIES Policy\(.* a tuple of policies is"),
        ({"POLICIES": OWN["POLICIES"] * 2}, "'doubted' is the name of two policies"),
        ({"KINDS": (14,)}, r"KINDS \(14,\) is not accepted; sentences by whole numbers are"),
        ({"MEMORY": {"asked": 3}}, r"MEMORY {'asked': 3} is not accepted; dtypes by names are"),
        ({"MEMORY": {"table": TABLE}}, "MEMORY name 'table' is that of a part of every episode"),
        ({"MEMORY": voi.MEMORY}, "MEMORY name 'evidence' is taken by envprobe_core.policies.voi"),
        ({"KINDS": {4: "Score"}}, "kind 4 is taken by envprobe_core.policies.rules; 14 is free"),
        (
            {"POLICIES": (Policy("simple", "Mine", Rule(14)),)},
            "policy name or title 'simple' is taken by policy 'simple' of envprobe_core.policies.rules",
        ),
        ({"POLICIES": (Policy("mine", "VoI", Rule(14)),)}, "'VoI' is taken by policy 'voi' of envprobe_core"),
    ],
)
def test_what_is_no_module_of_policies_is_refused_in_one_line(change, says):
    module = types.ModuleType("own")
    vars(module).update({name: value for name, value in (OWN | change).items() if value is not None})
    assert joining.holds_policies(module)
    if says is None:
        return joining.check(module, policies.MODULES)
    with pytest.raises(InputError, match=f"^policy module own:? .*{says}") as refused:
        joining.check(module, policies.MODULES)
    assert "\n" not in str(refused.value)


def test_a_function_that_is_not_compiled_is_refused():
    module = types.ModuleType("own")
    vars(module).update(OWN | {"opens": lambda params, rule, episode, reader: True})
    with pytest.raises(InputError, match="policy module own: opens is not compiled; it needs the decorator"):
        joining.check(module, policies.MODULES)


MODULE = """
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import Int, dtype_of
from envprobe_core.policies.base import Policy, Rule

KINDS = {14: "Probe the first field once and never again"}
POLICIES = (Policy("%s", "Own", Rule(14)),)
MEMORY = {"asked": dtype_of(("before", Int))}


@inline
def begin(params, episode):
    episode.asked.before = 0


@inline
def notice(params, episode):
    pass


@inline
def opens(params, rule, episode, reader):
    episode.sight.first = 0
    episode.asked.before += 1
    return episode.asked.before == 1
"""
ASKED = """
import numpy as np
import corridor
from envprobe_book.live_figures.explorer import explorer
from envprobe_book.pages.figures import style_of
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.policies import MODULES, POLICIES, find_policy
from envprobe_core.worlds import register

series = explorer().as_data()["series"]
assert {*series} == {*POLICIES}
print(find_policy("Own").name, MODULES[-1].__name__, series["own"], style_of("own").mark())
register(corridor)
for world in ("tooldag", "corridor"):
    probes = simulate_logged(make_condition(world, "own"), np.arange(2)).probe
    assert (probes[:, 0] == 0).all() and (probes[:, 1:] < 0).all()
"""


@pytest.fixture
def tree(tmp_path):
    """A package that is the core's, to whose policies a file can be added."""
    core = tmp_path / "envprobe_core"
    core.mkdir()
    for path in (ROOT / "envprobe_core").iterdir():
        if path.name != "policies":
            (core / path.name).symlink_to(path)
    shutil.copytree(ROOT / "envprobe_core/policies", core / "policies")
    return tmp_path


def asked_in(tree, *command):
    """What a command prints and how it ends where that package is found first, in plain Python."""
    paths = [str(tree), str(ROOT / "book"), str(ROOT / "tests")]
    return subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_file_in_the_folder_joins_in_every_world_and_is_drawn_in_ink(tree):
    (tree / "envprobe_core/policies/own.py").write_text(MODULE % "own", encoding="utf-8")
    found = asked_in(tree, "-c", ASKED)
    mark = "{'colour': 'currentColor', 'dark': 'currentColor', 'marker': 's', 'filled': True"
    said = f"own envprobe_core.policies.own {mark}, 'title': 'Own', 'dash': ''}} {mark}}}\n"
    assert (found.stderr, found.stdout) == ("", said)


def test_a_file_that_takes_a_name_is_refused_by_commands_in_a_line(tree):
    (tree / "envprobe_core/policies/own.py").write_text(MODULE % "simple", encoding="utf-8")
    found = asked_in(tree, "-m", "envprobe_book", "list")
    assert found.returncode == 2
    assert found.stderr == (
        "envprobe: policy module envprobe_core.policies.own: policy name or title 'simple' is taken by "
        "policy 'simple' of envprobe_core.policies.rules; choose another\n"
    )
