"""The paper's policies, its ablations and the placebos (Sections 3 and 4.2).

A rule looks at its sight alone; only the two oracles are shown gold.
"""

from envprobe_core import released
from envprobe_core.compiled.noise import choice, happens, u64
from envprobe_core.compiled.numba_support import helper, inline
from envprobe_core.compiled.records import CODE, NONE, first_highest
from envprobe_core.policies.base import Policy, Rule, additive

SELF_UNCERTAINTY_ALPHA, RELEASED_UNCERTAINTY = 70, 50  # percent
JUDGE_CANDIDATES, JUDGE_CONFIDENCE = 3, 70
NEVER, RANDOM, PERIODIC, SELF_UNCERTAINTY, SCORE, JUDGE, ORACLE, ORACLE_TW, REPLAY = range(9)
OWN = 10  # a reader's own function
KINDS = {
    NEVER: "Never probe",
    RANDOM: "Probe a uniformly drawn field with probability B/H",
    PERIODIC: "Probe at steps K - 1, 2K - 1, ... with K = floor(H/B): fields in turn, or the stalest as in "
    "the public code",
    SELF_UNCERTAINTY: "Probe the field of lowest reported confidence, if that is low enough",
    SCORE: "Probe the first highest-scored field if its score reaches the threshold (Algorithm 1)",
    JUDGE: "Let an embedded judge override Simple: veto d = 0, force a doubted direct blocker (ours)",
    ORACLE: "Probe the first mismatched field",
    ORACLE_TW: "Probe the mismatched field of greatest weight w (Section 4.2, Oracle-TW)",
    REPLAY: "Probe what the schedule says, when it says so",
    OWN: "Probe the first field that the reader's own function scores highest, if that is high enough",
}
POLICIES = (
    Policy("no-probe", "No-Probe", Rule(NEVER)),
    Policy("random", "Random", Rule(RANDOM)),
    Policy("periodic", "Periodic", Rule(PERIODIC)),
    Policy("self-uncertainty", "Self-Uncertainty", Rule(SELF_UNCERTAINTY)),
    additive("simple", "EnvProbe-Simple", SCORE),
    additive("minus-c", "Simple without c", SCORE, ("s", "u", "d")),
    additive("minus-s", "Simple without s", SCORE, ("c", "u", "d")),
    additive("minus-u", "Simple without u", SCORE, ("c", "s", "d")),
    additive("minus-d", "Simple without d", SCORE, ("c", "s", "u")),
    additive("cd", "EnvProbe-(c+d)", SCORE, ("c", "d")),
    additive("judge", "EnvProbe-Judge", JUDGE),
    Policy("oracle", "Oracle", Rule(ORACLE), sees_gold=True),
    Policy("oracle-tw", "Oracle-TW", Rule(ORACLE_TW), sees_gold=True),
    additive("placebo", "Placebo", SCORE, answered=False),
    Policy("yoked", "Yoked Placebo", Rule(REPLAY), ("c", "s", "u", "d"), answered=False, replays="simple"),
)


@inline
def opens(params, rule, episode, reader):
    """Write the field that a rule ranks first into the sight; say whether it wants it probed now."""
    sight, kind = episode.sight, rule.kind
    if kind == SCORE:
        score(rule, sight)
        return reaches(sight)
    if kind == RANDOM:  # a uniformly drawn field with probability B/H
        sight.first = choice(sight.draw, sight.fields)
        return happens(sight.draw, (u64(sight.budget) << u64(32)) // u64(sight.horizon))
    if kind == PERIODIC:
        return periodic(params, sight)
    if kind == SELF_UNCERTAINTY:
        return self_uncertainty(params, sight)
    if kind == JUDGE:
        return judge(rule, sight)
    if kind in (ORACLE, ORACLE_TW) and params.protocol.oracle == CODE:
        return public_oracle(params, episode)
    if kind == ORACLE:
        return oracle(sight, episode.gold)
    if kind == ORACLE_TW:
        return oracle_task_weighted(sight, episode.gold, episode.weight)
    if kind == REPLAY:
        sight.first = max(sight.scheduled, 0)
        return sight.scheduled != NONE
    if kind == OWN:
        episode.fault = reader(sight)
        return reaches(sight)
    return False


@inline
def score(rule, sight):
    """Write rho_i = c_i + s_i + u_i + d_i over the kept terms of every field (Equation 2)."""
    for i in range(sight.fields):
        c_and_s = rule.c * sight.c[i] + rule.s * sight.s[i]
        sight.rho[i] = (c_and_s + rule.u * sight.u[i]) + rule.d * sight.d[i]


@inline
def reaches(sight):
    """Take the first field of the highest rho; say whether that reaches rho_star (Algorithm 1)."""
    sight.first = first_highest(sight.rho, sight.fields)
    sight.highest = sight.rho[sight.first]
    return sight.highest >= sight.threshold


@inline
def periodic(params, sight):
    """Probe at steps K - 1, 2K - 1, ... with K = floor(H/B), which spends the budget.

    Fields come in turn, or as in the public code the stalest belief that is reported.
    """
    period = max(1, sight.horizon // max(1, sight.budget))
    if params.protocol.baselines == CODE:
        first_reported(params, sight, sight.staleness)
    else:
        sight.first = sight.used % sight.fields
    return sight.budget > 0 and (sight.step + 1) % period == 0


@inline
def self_uncertainty(params, sight):
    """Probe the field of lowest reported confidence, if that is low enough."""
    first_reported(params, sight, sight.u)
    lowest = sight.confidence[sight.first]
    if params.protocol.baselines == CODE:
        return lowest < RELEASED_UNCERTAINTY or sight.risk >= 1
    return lowest < SELF_UNCERTAINTY_ALPHA


@inline
def first_reported(params, sight, values):
    """Take the first field of the highest value, or the one that is reported alone: its c is the highest."""
    sight.first = first_highest(values, sight.fields)
    if params.habits.single_report and params.world.structure == CODE:
        sight.first = first_highest(sight.c, sight.fields)


@helper
def judge(rule, sight):
    """Let an embedded judge override Simple: veto d = 0, force a doubted direct blocker (ours)."""
    score(rule, sight)
    if reaches(sight) and sight.d[sight.first] > 0:
        return True
    candidate = sight.first
    for _ in range(min(JUDGE_CANDIDATES, sight.fields)):
        if sight.d[candidate] == 1.0 and sight.confidence[candidate] < JUDGE_CONFIDENCE:
            sight.first = candidate
            return True
        candidate = next_highest(sight.rho, sight.fields, candidate)
    return False


@inline
def oracle(sight, gold):
    """Probe the first field whose belief is wrong."""
    for field in range(sight.fields):
        if sight.value[field] != gold[field]:
            sight.first = field
            return True
    return False


@inline
def public_oracle(params, episode):
    """Probe what is reported where the public code finds it wrong; of many reports the first wrong field."""
    world, sight = params.world, episode.sight
    oracle(sight, episode.gold)
    if params.habits.single_report:
        sight.first = first_highest(sight.c, sight.fields)
    return released.mismatched(
        world, episode.task, episode.table.value, episode.gold, sight.action, params.habits.scribe
    )


@helper
def oracle_task_weighted(sight, gold, weight):
    """Probe the wrong field of greatest weight w (Section 4.2, Oracle-TW)."""
    best = NONE
    for field in range(sight.fields):
        if sight.value[field] != gold[field] and (best == NONE or weight[field] > weight[best]):
            best = field
    sight.first = max(best, 0)
    return best != NONE


@inline
def next_highest(values, count, last):
    """The position that follows `last` in descending order, ties by position."""
    best = NONE
    for i in range(count):
        after = values[i] < values[last] or (values[i] == values[last] and i > last)
        if after and (best == NONE or values[i] > values[best]):
            best = i
    return best
