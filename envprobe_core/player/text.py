"""What the page of the episode player says: every number and every word of direction is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import Table, Text, bracket, code, counted, number, signed
from envprobe_core.player.choosing import AHEAD, BEHIND, MIDDLE, Choice
from envprobe_core.stats import RESAMPLES, paired_bootstrap

if TYPE_CHECKING:
    import pandas as pd


def tell_page(gaps: pd.DataFrame) -> Text:
    """Say whose episodes the page shows."""
    row = gaps.iloc[0]
    seeds = int(gaps.groupby(["protocol", "world"]).size().max())
    return Text(
        f"The agent of this page is a simulation with the profile `{row['profile']}`; no language model was "
        f"called. {policy_title(row['policy'])} and {policy_title(row['other'])} were run on the same "
        f"{seeds} seeds of each world in regime {row['regime']}, under {code(gaps['protocol'].unique())}."
    )


def show_gaps(gaps: pd.DataFrame, resamples: int = RESAMPLES) -> Table:
    """Show how the two policies differ over all seeds, so that single episodes can be placed among them."""
    first, second = policy_title(gaps["policy"].iloc[0]), policy_title(gaps["other"].iloc[0])
    rows = []
    for (protocol, world), part in gaps.groupby(["protocol", "world"], sort=False):
        difference = part["difference"]
        mean = paired_bootstrap(difference.to_numpy(), resamples=resamples)
        rows.append(
            (
                f"`{protocol}`", WORLD_TITLES[world], f"{signed(mean.mean, 3)} {_interval(mean)}",
                signed(difference.min()), signed(choose_median(part)), signed(difference.max()),
                f"{(difference > 0).sum()} of {len(part)}",
            )
        )  # fmt: skip
    return Table(
        "tab-player-gaps",
        f"{first} − {second}, mean share of right beliefs over an episode, {{eq}}`eq-episode-gap`: mean over "
        "seeds with its 95% interval, lowest seed, median, highest, and the seeds on which "
        f"{first} is ahead.",
        ("protocol", "world", "mean", "lowest", "median", "highest", "ahead"),
        rows,
        "llrrrrr",
    )


def _interval(mean: Any) -> str:
    return bracket(mean.low, mean.high, 3)


def choose_median(part: pd.DataFrame) -> float:
    """Return the (lower) median difference, that of the seed which the rule `middle` picks."""
    return float(part["difference"].sort_values().iloc[(len(part) - 1) // 2])


def tell_rules(gaps: pd.DataFrame) -> Text:
    """Say by which rules the player's episodes were chosen."""
    first, second = policy_title(gaps["policy"].iloc[0]), policy_title(gaps["other"].iloc[0])
    protocols = list(gaps["protocol"].unique())
    more = f" Under {code(protocols[1:])} it is the median seed of each world." if protocols[1:] else ""
    return Text(
        "The player holds these episodes, chosen by {eq}`eq-episode-gap` and of equals the lowest seed. "
        f"Under `{protocols[0]}`, in each world: the seed on which {first} does best against {second}, the "
        f"one on which it does worst, and the median seed, which is what usually happens.{more}"
    )


def tell_worth(choices: Sequence[Choice], pairs: Sequence[Mapping[str, Any]]) -> Text:
    """Name three episodes to begin with: the extremes over all worlds, and the middle one of the medians."""
    shown = list(zip(choices, pairs, strict=True))
    main = [item for item in shown if item[0].protocol == choices[0].protocol]
    by_rule = {
        rule: sorted((item for item in main if item[0].rule == rule), key=lambda item: item[0].difference)
        for rule in (AHEAD, MIDDLE, BEHIND)
    }
    medians = by_rule[MIDDLE]
    picked = [by_rule[AHEAD][-1], by_rule[BEHIND][0], medians[(len(medians) - 1) // 2]]
    return Text("\n".join(f"1. {_episode(choice, pair)}" for choice, pair in picked))


def _episode(choice: Choice, pair: Mapping[str, Any]) -> str:
    first, second = pair["runs"]
    heads = {
        AHEAD: f"*{first['title']} at its best.*",
        BEHIND: f"*{first['title']} at its worst.*",
        MIDDLE: "*The middle.*",
    }
    return (
        f"{heads[choice.rule]} {WORLD_TITLES[choice.world]}, seed {choice.seed}: on average "
        f"{_ahead(choice, pair)}. {pair['parting']} {_account(first)} {_account(second)}"
    )


def _ahead(choice: Choice, pair: Mapping[str, Any]) -> str:
    first, second = (run["title"] for run in pair["runs"])
    if choice.difference == 0:
        return "they hold the same share of right beliefs"
    leader = first if choice.difference > 0 else second
    return f"{leader} is ahead by {number(abs(choice.difference))}"


def _account(run: Mapping[str, Any]) -> str:
    """Sum an episode up in a sentence."""
    fired = fired_steps(run)
    probes = f"{counted(len(fired))} {'probe' if len(fired) == 1 else 'probes'}"
    if fired:
        probes += f", the last at step {fired[-1]}"
    goal = "reaches the goal" if run["success"] else "does not reach the goal"
    right = number(run["accuracy"][-1])
    return f"{run['title']} ends with {right} of its beliefs right after {probes}, and {goal}."


def tell_partings(pairs: Sequence[Mapping[str, Any]]) -> Text:
    """Say when the two policies part in the episodes shown."""
    steps = [pair["parts"] for pair in pairs if pair["parts"] is not None]
    never = len(pairs) - len(steps)
    if not steps:
        return Text("In none of these episodes do the two policies ever part.")
    at_once = sum(step == 0 for step in steps)
    text = (
        f"In {counted(len(steps))} of the {counted(len(pairs))} episodes the two policies part, "
        f"{counted(at_once)} of them at step 0 and the latest at step {max(steps)}."
    )
    return Text(f"{text} In {counted(never)} they never do." if never else text)


def tell_probing(pairs: Sequence[Mapping[str, Any]]) -> Text:
    """Say of each policy when its last probe falls in the episodes shown, and what its answers were worth."""
    lines = []
    for place in range(2):
        runs = [pair["runs"][place] for pair in pairs]
        title = runs[0]["title"]
        last = [max(steps) for run in runs if (steps := fired_steps(run))]
        if not last:
            lines.append(f"* {title} never probes in these episodes.")
            continue
        probes, useful = sum(len(fired_steps(run)) for run in runs), sum(sum(run["useful"]) for run in runs)
        lines.append(
            f"* {title}: the last probe falls at step {sorted(last)[(len(last) - 1) // 2]} in the median; "
            f"{useful} of {probes} answers differ from the belief held."
        )
    return Text("\n".join(lines))


def tell_errors(pairs: Sequence[Mapping[str, Any]]) -> Text:
    """Say how much the world changed by itself in these episodes, and how much the agent wrote wrongly."""
    runs = [run for pair in pairs for run in pair["runs"]]
    moved = sum(len(fields) for run in runs for fields in run["moved"])
    written = [right for run in runs for wrote in run["wrote"] for _, right in wrote]
    return Text(
        f"In the episodes of the player the world changed {moved:,} values by itself. The agent changed "
        f"{len(written):,} in its table after looking or acting, {written.count(False):,} of them to "
        "something that was not true when it was written."
    )


def fired_steps(run: Mapping[str, Any]) -> list[int]:
    """Return the steps at which a run probed."""
    return [t for t, field in enumerate(run["probe"]) if field >= 0]
