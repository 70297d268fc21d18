"""When a look pays: what one look at a field is worth by when it is taken, and what it may cost (ours).

A field that was right at age 0 is wrong at age a with probability e(a). Where it moves to one of R places
with probability h a step, e(a) = (1 - 1/R)(1 - lam**a) with lam = 1 - h; where it flips between two values,
lam = 1 - 2h and the limit is 1/2. `limit` is that limit, e at infinity. A look at step t tells g_t, and
nothing else is learned. Worths are in fields: the expected number of fields that are right because of it.

Where the field of an agent is lost for good, as a tool that nobody loads again, `lost_end` and `lost_mean`
hold. `graft` asks a recorded log what looks would have been worth in it; it assumes nothing of the world.
"""

from collections.abc import Callable

import numpy as np

from envprobe_core.compiled.records import UNKNOWN
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import Trajectory
from envprobe_core.worlds.base import Floats, Ints

Worth = Callable[..., float]


def worth_end(t: int, horizon: int, lam: float, limit: float = 1.0) -> float:
    """The worth of a look at step t for a score at the end: e(H) - e(H - t); it rises with t at any rate.

    >>> round(worth_end(29, 30, 0.9, 0.9), 4)
    0.7718
    """
    return limit * (lam ** (horizon - t) - lam**horizon)


def worth_mean(t: int, horizon: int, lam: float, limit: float = 1.0) -> float:
    """The worth of a look at step t for a score that is averaged over the steps.

    It is the same at t and H - t, so the best step is the middle at any rate.

    >>> round(worth_mean(10, 30, 0.9), 6) == round(worth_mean(20, 30, 0.9), 6)
    True
    """
    if lam == 1:
        return 0.0
    return limit * (1 - lam**t) * (lam - lam ** (horizon - t + 1)) / ((1 - lam) * horizon)


def worth_use(t: int, use: int, lam: float, limit: float = 1.0) -> float:
    """The worth of a look at step t for an action at step `use` that reads the field; 0 after it.

    >>> worth_use(9, 9, 0.9)
    0.0
    """
    return worth_end(t, use, lam, limit) if t < use else 0.0


def lost_end(t: int, horizon: int, rate: float) -> float:
    """The worth at the end of a look at a field that is lost for good with a probability a step.

    >>> round(lost_end(14, 30, 0.02), 3)
    0.246
    """
    return 1 - (1 - rate) ** t


def lost_mean(t: int, horizon: int, rate: float) -> float:
    """The same for a score that is averaged over the steps; here the best step hangs on the rate.

    >>> [best_step(lost_mean, 30, rate) for rate in (0.02, 0.1, 0.3)]
    [14, 11, 6]
    """
    return (1 - (1 - rate) ** t) * (horizon - t) / horizon


def best_step(worth: Worth, horizon: int, *rates: float) -> int:
    """The step at which a look is worth most.

    >>> best_step(worth_end, 30, 0.9), best_step(worth_mean, 30, 0.9)
    (29, 15)
    """
    return max(range(horizon), key=lambda t: worth(t, horizon, *rates))


def budget(horizon: int, lam: float, limit: float, price: float) -> int:
    """How many looks pay for a score at the end, at distinct fields, the k-th last one at step H - k.

    Args:
        horizon: H.
        lam, limit: as the module says.
        price: of a look, in fields.

    >>> budget(30, 0.9, 1.0, 0.2)
    13
    """
    return sum(worth_end(horizon - k, horizon, lam, limit) > price for k in range(1, horizon + 1))


def net_worth(looks: int, horizon: int, lam: float, limit: float, price: float) -> float:
    """What so many looks are worth for a score at the end, minus their price, in fields.

    >>> round(net_worth(13, 30, 0.9, 1.0, 0.2), 2)
    3.56
    """
    return sum(worth_end(horizon - k, horizon, lam, limit) - price for k in range(1, looks + 1))


def regret(horizon: int, rate: float, told: float, limit: float, price: float) -> float:
    """What is lost by the number of looks that pays at another rate than the true one, in fields.

    The steps at which looks are taken do not hang on the rate, so a wrong rate costs by their number alone.

    >>> round(regret(30, 0.1, 0.3, 1.0, 0.2), 2)
    1.44
    """
    best, taken = (budget(horizon, 1 - one, limit, price) for one in (rate, told))
    return net_worth(best, horizon, 1 - rate, limit, price) - net_worth(
        taken, horizon, 1 - rate, limit, price
    )


def pays_at(t: int, age: int, horizon: int, lam: float, limit: float, price: float) -> bool:
    """Whether a look at step t pays for a score at the end, at a belief of an age.

    >>> pays_at(29, 10, 30, 0.9, 1.0, 0.2), pays_at(5, 10, 30, 0.9, 1.0, 0.2)
    (True, False)
    """
    return limit * (1 - lam**age) * lam ** (horizon - t) > price


def ageing(condition: Condition) -> tuple[Floats, Floats]:
    """How each field of a condition's world ages, `lam limit` [field]; a limit of 0 never changes by itself.

    A loaded tool is lost for good, as no action is in it, and a dependency with any of its prerequisites. Of
    doors and edges the share that can be locked enters the limit.

    >>> from envprobe_core.conditions import make_condition
    >>> lam, limit = ageing(make_condition("objectstate", "simple"))
    >>> float(lam[0].round(2)), float(limit[0].round(2))
    (0.9, 0.9)
    """
    world, rules, rate = condition.built, condition.built.rules, condition.built.rates
    lam, limit = np.ones(world.fields), np.zeros(world.fields)
    if condition.world == "tooldag":
        tools = rules.tools
        lam[: tools - 1], limit[: tools - 1] = 1 - rate[0], 1.0
        lam[tools + 1 : 2 * tools], limit[tools + 1 : 2 * tools] = (1 - rate[0]) ** rules.prerequisites, 1.0
        return lam, limit
    places = rules.rooms if condition.world == "objectstate" else rules.nodes
    ways = rules.doors if condition.world == "objectstate" else rules.edges
    moves, flips = (rate > 0) & (world.domain > 2), (rate > 0) & (world.domain == 2)
    lam[moves], limit[moves] = 1 - rate[moves], 1 - 1 / places
    lam[flips], limit[flips] = 1 - 2 * rate[flips], 0.5 * rules.locks / ways
    return lam, limit


def foreseen(condition: Condition, recording: Trajectory) -> Floats:
    """The accuracy that the forms foresee from the steps and fields of probes alone, [row].

    It is that at the end, or where the protocol averages over steps the mean of the shares of right fields.
    The forms read no belief, and of gold only which fields an instance has. What was not asked has the age of
    the episode, and is unknown where the agent begins with one look around.
    """
    lam, limit = ageing(condition)
    probe, steps = np.asarray(recording.probe), recording.steps.astype(np.int64)
    known, averaged = recording.gold[:, 0] != UNKNOWN, condition.protocol.accuracy == "slots"
    asked, found = np.full((len(probe), len(lam)), -1), np.zeros(len(probe))
    for t in range(probe.shape[1] + 1):
        wrong = limit * (1 - lam ** (t - np.maximum(asked, 0)))
        if condition.protocol.start == "observation":
            wrong[asked < 0] = 1.0
        right = 1 - (wrong * known).sum(axis=1) / known.sum(axis=1)
        counts = (t >= 1) & (t <= steps) if averaged else t == steps
        found += counts * right / (np.maximum(steps, 1) if averaged else 1)
        if t < probe.shape[1]:
            rows = np.flatnonzero(probe[:, t] >= 0)
            asked[rows, probe[rows, t]] = t
    return found


def graft(recording: Trajectory, probe: Ints, *, averaged: bool = False) -> Floats:
    """What looks would have been worth in recorded episodes that had none, [row], as a share of the fields.

    The truth g_t is written into the log at each probed step and field, and stays until the agent itself
    writes that field anew; then right fields are counted again. It is no run: what an agent would have done
    otherwise for an answer is not in it. It needs gold in the log, and prices a look for any agent.

    Args:
        recording: episodes without probes.
        probe: [row, step], the fields that are looked at, or -1.
        averaged: whether right fields are averaged over the steps instead of counted at the end.

    >>> from envprobe_core.conditions import make_condition
    >>> from envprobe_core.engine.batch import simulate_logged
    >>> own = simulate_logged(make_condition("tooldag", "no-probe"), np.arange(20))
    >>> looks = np.full(own.probe.shape, -1); looks[:, 29] = 3
    >>> float(graft(own, looks).mean().round(4))
    0.0241
    """
    belief, gold, steps = recording.belief, recording.gold, recording.steps.astype(np.int64)
    probe, worth = np.asarray(probe), np.zeros(len(steps))
    kept, told = np.zeros(belief[:, 0].shape, bool), belief[:, 0].copy()  # [row, field]
    for t in range(probe.shape[1]):
        held, truth = belief[:, t + 1], gold[:, t + 1]
        rows = np.flatnonzero(probe[:, t] >= 0)
        fields = probe[rows, t]
        kept[rows, fields], told[rows, fields] = True, gold[rows, t, fields]
        kept &= held == belief[:, t]  # the agent's own change of it ends it
        better = (np.where(kept, told, held) == truth).sum(axis=1) - (held == truth).sum(axis=1)
        worth += better / np.maximum(steps, 1) * (t < steps) if averaged else better * (t + 1 == steps)
    return worth / (gold[:, 0] != UNKNOWN).sum(axis=1)
