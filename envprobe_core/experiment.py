"""The experiment: `run` gives a row an episode, `play` one episode step by step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from envprobe_core.conditions import (
    Condition,
    Names,
    Seeds,
    check_seed,
    find_policies,
    find_profile,
    find_protocols,
    find_regime,
    find_worlds,
    is_whole,
    make_condition,
    names,
    read_seeds,
)
from envprobe_core.engine.batch import Columns, simulate, simulate_logged, terms_of
from envprobe_core.errors import InputError, look_up
from envprobe_core.facts import FACTS, Recorded
from envprobe_core.parallel import hands, map_unordered
from envprobe_core.policies import POLICIES, TERMS, Policy, find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import WORLDS

COLUMNS = (
    "world", "policy", "regime", "protocol", "profile", "budget", "threshold", "seed", "n_fields",
    "horizon", "steps", "accuracy", "accuracy_terminal", "accuracy_slot", "success", "probes", "useful",
    "collapse_onset", "actions", "valid_actions", "action_onset", "repeated_probes",
)  # fmt: skip
OWN = -1  # as a budget: the regime's; as a threshold: 1.5


def run(
    worlds: Names = tuple(WORLDS),
    policies: Names | Sequence[str | Policy] = tuple(POLICIES),
    regimes: Names = "S2",
    protocols: Names = "paper observed released",
    profiles: Names = "typical",
    seeds: str = "default",
    budgets: int | Sequence[int] = OWN,
    thresholds: float | Sequence[float] = OWN,
    facts: Names = (),
    jobs: int = 1,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Run every combination of what is given, once each, on the same seeds; one row an episode.

    Args:
        worlds: names or titles, as text (`"tooldag graphnav"`, `"tools, graphs"`) or a sequence; so for the
            next four.
        policies: names or titles, or policies that have none in the book (as of `policies.value_policy`).
        regimes: names.
        protocols: names or titles (`"as written"`), with or without switches turned.
        profiles: names of agent profiles.
        seeds: `FIRST:PAST`, or `default` for each condition's own.
        budgets: probes an episode may spend, one number or several; -1 is the regime's own.
        thresholds: of the policies that have one; -1 is 1.5.
        facts: further columns, names of `FACTS`.
        jobs: processes of this machine.
        executor: of `concurrent.futures`, that does the work instead: `parallel.processes`, or the
            `get_executor()` of a Dask client.

    Returns:
        The columns `COLUMNS` and those of `facts`, in the order of what is given and of seeds;
        an onset that never comes is NaN.

    Raises:
        InputError: for an unknown name or a value that a condition refuses.

    >>> frame = run("tooldag", "simple periodic", protocols="paper", seeds="0:20")
    >>> frame.groupby("policy")["accuracy"].mean().round(4).to_dict()
    {'periodic': 0.7315, 'simple': 0.7241}
    """
    every = [
        Condition(
            world, policy, regime, protocol, profile, None if budget == OWN else budget,
            threshold if policy.has_threshold and threshold != OWN else None,
        )
        for protocol, profile, regime, world, policy, budget, threshold in product(
            find_protocols(protocols), map(find_profile, names(profiles)), map(find_regime, names(regimes)),
            find_worlds(worlds), find_policies(policies), _several(budgets), _several(thresholds),
        )
    ]  # fmt: skip
    # once each: a policy without a threshold has one condition under all thresholds; `key` joins pairs
    conditions = list(
        {(condition.policy, *condition.key.values()): condition for condition in every}.values()
    )
    if not is_whole(jobs) or jobs < 1:
        raise InputError(f"jobs {jobs!r} is not a whole number of processes from 1")
    if not conditions:
        raise InputError("run: nothing to run; give at least one of worlds, policies, regimes and so on")
    return run_frame(conditions, read_seeds(seeds), facts, jobs=jobs, executor=executor)


def _several(given: Any) -> Iterable[Any]:
    """Several values as they were given, one as a tuple of it alone."""
    values = given.tolist() if hasattr(given, "tolist") else given
    return values if isinstance(values, Iterable) and not isinstance(values, str) else (values,)


def run_conditions(
    conditions: Sequence[Condition],
    seeds: Seeds | Sequence[Seeds] | None = None,
    *,
    batch_size: int = 4000,
    jobs: int = 1,
    executor: Executor | None = None,
    work: Callable[[Condition, Seeds], Columns] = simulate,
) -> Columns:
    """Run a grid and return its episode table, in the order of conditions and of each condition's seeds.

    Args:
        conditions: the grid; the column `condition` is a place in it.
        seeds: the seeds of all conditions, or one array a condition; by default each condition's own.
        batch_size: the most episodes that a process is given at a time; changes nothing but speed.
        jobs: processes; changes nothing but speed.
        executor: whom the work is handed to instead.
        work: what runs and measures a condition on some of its seeds: columns [row].

    >>> from envprobe_core.conditions import make_condition, parse_seeds
    >>> table = run_conditions([make_condition("tooldag", "simple")], parse_seeds("0:3"))
    >>> table["probes"].tolist()
    [7, 7, 7]
    """
    if seeds is None:
        seeds = [condition.default_seeds() for condition in conditions]
    of_conditions = [seeds] * len(conditions) if isinstance(seeds, np.ndarray) else seeds
    pieces = [
        (index, first, condition, own[first : first + batch_size])
        for index, (condition, own) in enumerate(zip(conditions, of_conditions, strict=True))
        for first in range(0, len(own), batch_size)
    ]
    with hands(len(pieces), jobs, executor) as executor:
        done = sorted(map_unordered(partial(_run_piece, work), pieces, executor), key=itemgetter(0, 1))
    return {name: np.concatenate([columns[name] for *_, columns in done]) for name in done[0][2]}


def _run_piece(
    work: Callable[..., Columns], piece: tuple[int, int, Condition, Seeds]
) -> tuple[int, int, Columns]:
    index, first, condition, seeds = piece
    return (
        index,
        first,
        {"condition": np.full(len(seeds), index)} | condition.named(seeds, {}) | work(condition, seeds),
    )


def run_frame(
    conditions: Sequence[Condition],
    seeds: Seeds | Sequence[Seeds] | None = None,
    facts: Names = (),
    *,
    jobs: int = 1,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Run conditions, each on the seeds given or on its own; the frame of `run`.

    >>> from envprobe_core.conditions import make_condition, parse_seeds
    >>> frame = run_frame([make_condition("tooldag", "simple")], parse_seeds("0:3"))
    >>> frame["policy"].tolist()
    ['simple', 'simple', 'simple']
    """
    wanted = {name: look_up("fact", name, FACTS) for name in names(facts)}
    work = partial(_measured, facts=wanted) if wanted else simulate
    table = run_conditions(conditions, seeds, jobs=jobs, executor=executor, work=work)
    return episode_frame(conditions, table, tuple(wanted))


def _measured(
    condition: Condition, seeds: Seeds, facts: Mapping[str, Callable[[Recorded], Columns]]
) -> Columns:
    """Run a condition, and measure facts of its episodes."""
    seen = Recorded(condition, seeds, simulate_logged(condition, seeds, scores_all=False))
    found = dict(seen.trajectory.measures)
    for measured in dict.fromkeys(facts.values()):
        columns = measured(seen)
        found |= {name: columns[name] for name in columns.keys() & facts}
    return found


def episode_frame(
    conditions: Sequence[Condition], table: Mapping[str, np.ndarray], facts: Sequence[str] = ()
) -> pd.DataFrame:
    """A table of `run_conditions` as `run`'s frame.

    >>> from envprobe_core.conditions import make_condition, parse_seeds
    >>> conditions, seeds = [make_condition("tooldag", "simple")], parse_seeds("0:2")
    >>> episode_frame(conditions, run_conditions(conditions, seeds))["seed"].tolist()
    [0, 1]
    """
    keys = pd.DataFrame([condition.key for condition in conditions]).astype(
        {"budget": np.int64, "threshold": np.float64}
    )
    columns = {**table, **{name: keys[name].to_numpy()[table["condition"]] for name in keys}}
    return pd.DataFrame({name: columns[name] for name in (*COLUMNS, *facts)})


def play(
    world: str = "tooldag",
    policy: str = "simple",
    seed: int = 0,
    regime: str = "S2",
    protocol: str = "paper",
    profile: str = "typical",
    budget: int = OWN,
    threshold: float = OWN,
) -> pd.DataFrame:
    """Play one episode and keep what its policy saw: a row a step and field.

    Returns:
        `t field kind` (names); `belief gold` (values, -1 unknown) and `staleness confidence` as reported;
        the terms `c s u d`; the step's `action` (the name of the proposed task action, `wait`), `probe`
        (whether this field is probed), `acted`, `valid` and `place`. The last step has no decision and is
        left out.

    >>> steps = play("tooldag", "simple", seed=0)
    >>> [int(step) for step in steps.loc[steps["probe"].notna(), "t"]][:3]
    [0, 0, 0]
    """
    check_seed(seed, "play: seed")
    condition = make_condition(
        world, policy, regime, parse_protocol(protocol), profile, None if budget == OWN else budget,
        threshold if find_policy(policy).has_threshold and threshold != OWN else None,
    )  # fmt: skip
    seeds = np.array([seed], dtype=np.int64)
    recording, built, tables = simulate_logged(condition, seeds), condition.built, []
    terms = terms_of(condition, seeds, recording)
    for t in range(int(recording.steps[0])):
        action, probe = int(recording.action[0, t]), int(recording.probe[0, t])
        table = {
            "t": t,
            "field": built.field_names,
            "kind": built.field_kinds,
            **{
                name: getattr(recording, name)[0, t] for name in ("belief", "gold", "staleness", "confidence")
            },
            **{term: terms[0, t, :, place] for place, term in enumerate(TERMS)},
            "action": built.action_names[action] if action >= 0 else "wait",
            "probe": np.arange(built.fields) == probe,
            **{name: getattr(recording, name)[0, t] for name in ("acted", "valid", "place")},
        }
        tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True)
