"""The full-size worlds under their ceilings: every policy's distance, in points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envprobe_core.bound.ceilings import accuracy_ceiling, has_ceiling, success_ceiling
from envprobe_core.bound.comparing import COMPETING, DIAGNOSTIC, VOI
from envprobe_core.cells import find_profile, find_regime, make_cell
from envprobe_core.experiments import Names, find_protocols, read_seeds, run_frame
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import Table, Text, bracket, code, listed, number, percent
from envprobe_core.statistics import mean_interval, wilson
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("success", "accuracy")


def load_whole(
    regime: str, protocols: Names, profile: str = "typical", seeds: str = "0:220", resamples: int = 10_000
) -> pd.DataFrame:
    """Run every policy on the full-size worlds, and compute their ceilings on the same seeds.

    Returns:
        One row a protocol, world, policy and measure: `value`, `ceiling`, its 95% interval `low` and `high`,
        `broken` (episodes that succeed where the ceiling says none can), `n`. Protocols without ceilings are
        left out.
    """
    import pandas as pd

    level, agent, rows = find_regime(regime), find_profile(profile), []
    for protocol in filter(has_ceiling, find_protocols(protocols)):
        for world in WORLDS:
            cells = [
                make_cell(world, name, regime, protocol, profile)
                for name in (*COMPETING, *VOI.values(), *DIAGNOSTIC)
            ]
            given = read_seeds(seeds)
            some = cells[0].default_seeds() if given is None else given
            frame = run_frame(cells, some)
            possible = success_ceiling(world, level, protocol, agent, some)
            kept = accuracy_ceiling(world, level, protocol, agent, some)
            ends = {
                "success": wilson(int(possible.sum()), len(some)),
                "accuracy": mean_interval(kept, resamples=resamples),
            }
            for name, own in frame.groupby("policy", sort=False):
                succeeded = own["success"].to_numpy()
                rows += [
                    {
                        "protocol": protocol.name,
                        "world": world,
                        "policy": name,
                        "measure": measure,
                        "value": float(own[measure].mean()),
                        "ceiling": ends[measure].value,
                        "low": ends[measure].low,
                        "high": ends[measure].high,
                        "broken": int((succeeded & ~possible).sum()),
                        "n": len(some),
                    }
                    for measure in MEASURES
                ]
    columns = ["protocol", "world", "policy", "measure", "value", "ceiling", "low", "high", "broken", "n"]
    return pd.DataFrame(rows, columns=columns)


def show_whole(whole: pd.DataFrame) -> list[Table]:
    """Show the ceilings and every policy's distance from them: a table a protocol."""
    tables = []
    for protocol, part in whole.groupby("protocol", sort=False):
        cells = part.set_index(["policy", "measure", "world"])
        head = ["policy"]
        ceiling = ["*ceiling*"]
        for measure in MEASURES:
            for world in WORLDS:
                head.append(f"{measure}, {WORLD_TITLES[world].removesuffix('World')}")
                row = cells.loc[(DIAGNOSTIC[0], measure, world)]
                ceiling.append(f"{number(row['ceiling'], 3)} {bracket(row['low'], row['high'], 3)}")
        rows = [ceiling]
        for name in dict.fromkeys(part["policy"]):
            line = [policy_title(name)]
            for measure in MEASURES:
                for world in WORLDS:
                    row = cells.loc[(name, measure, world)]
                    line.append(number(100 * (row["ceiling"] - row["value"]), 1))
            rows.append(line)
        caption = (
            f"Under `{protocol}`: the ceilings with 95% intervals ({part['n'].max()} seeds), and by how many "
            "points each policy stays below."
        )
        label = "tab-bound-whole-" + "".join(letter if letter.isalnum() else "-" for letter in str(protocol))
        tables.append(Table(label, caption, head, rows, "l" + "r" * (len(head) - 1)))
    return tables


def tell_whole(whole: pd.DataFrame, asked: Names) -> Text:
    """Say how close the policies come, where nothing can be won, and how much the ceilings say."""
    left_out = [protocol.name for protocol in find_protocols(asked) if not has_ceiling(protocol)]
    lines = []
    if left_out:
        lines.append(
            f"* No ceiling is given under {code(left_out)}: there the world stands still during a probe, or "
            "accuracy is another measure, and a relaxation of this kind would say little."
        )
    if whole.empty:
        return Text("\n".join(lines))
    broken = int(whole.groupby(["protocol", "world", "policy"])["broken"].first().sum())
    episodes = int(whole[whole["measure"] == "success"]["n"].sum())
    lines.append(
        f"* Seed by seed, {broken:,} of {episodes:,} episodes succeed where the ceiling says that none can."
    )
    success = whole[whole["measure"] == "success"]
    for protocol, part in success.groupby("protocol", sort=False):
        told = []
        for world, own in part.groupby("world", sort=False):
            title, ceiling = WORLD_TITLES[world], own["ceiling"].iloc[0]
            if ceiling == 0.0:
                told.append(f"in {title} no policy of any kind can complete one of these episodes")
                continue
            deployable = own[~own["policy"].isin(DIAGNOSTIC)]
            best = deployable.loc[deployable["value"].idxmax()]
            told.append(
                f"in {title} the best deployable policy ({policy_title(best['policy'])}) completes "
                f"{percent(best['value'])} of at most {percent(ceiling)}"
            )
        lines.append(f"* Under `{protocol}`, {listed(told)}.")
    accuracy = whole[whole["measure"] == "accuracy"]
    gap = 100 * (accuracy["ceiling"] - accuracy["value"])
    deployable = accuracy[~accuracy["policy"].isin(DIAGNOSTIC)]
    nearest = 100 * (
        deployable["ceiling"] - deployable.groupby(["protocol", "world"])["value"].transform("max")
    )
    lines.append(
        "* The ceiling of accuracy is loose, for it forgives everything but the last step. The most "
        f"accurate deployable policies stay {number(nearest.min(), 1)} to {number(nearest.max(), 1)} points "
        f"below (all policies, oracles included: {number(gap.min(), 1)} to {number(gap.max(), 1)}). How much "
        "of that could be won is not known here; on the small worlds it is."
    )
    return Text("\n".join(lines))
