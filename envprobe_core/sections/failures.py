"""Section *failure cases*: how often the paper's two patterns occur, and one episode of each.

Source: the appendix on failure cases (`app:failures`); the predicates are in `patterns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import make_cell
from envprobe_core.experiments import DEFAULT_SEEDS, PROTOCOLS, Names, find_protocols, names, read_seeds
from envprobe_core.figures import POLICY_STYLES, WORLD_TITLES, Drawing, canvas, interval, policy_title
from envprobe_core.markup import Table, Text, bracket, listed, percent
from envprobe_core.patterns import DOUBT, MINOR, STAGES, STALE, match
from envprobe_core.statistics import wilson
from envprobe_core.widgets.player import Player, pair_of
from envprobe_core.witness import witness
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

PROBING = "simple cd judge self-uncertainty periodic random oracle"
PATTERNS = {"procedural": ("tooldag",), "spatial": ("objectstate", "graphnav")}


@dataclass(frozen=True)
class Find:
    """One probe of a recorded episode that matches a pattern in full."""

    world: str
    policy: str
    protocol: str
    profile: str
    regime: str
    seed: int
    step: int
    field: int
    missed: int


def load_failures(
    policies: Names = PROBING,
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Follow the patterns through the episodes of every policy, world and protocol.

    Parameters are those of `experiments.load_grid`.

    Returns:
        One row an episode: `protocol world policy profile regime seed success probes`, `stage1`...: probes
        that meet the pattern's first conditions, up to all (`full`), and the first full match `step field
        missed` (-1 where there is none).
    """
    import pandas as pd

    chosen, parts = read_seeds(seeds), []
    for protocol in find_protocols(protocols):
        for world in WORLDS:
            for policy in names(policies):
                cell = make_cell(world, policy, regime, protocol, profile)
                seen = witness(cell, cell.default_seeds() if chosen is None else chosen)
                found, rows = match(seen), len(seen.seeds)
                counts = found.episodes(rows)
                first = np.full((rows, 3), -1)
                full = np.flatnonzero(found.full)[::-1]  # the earliest is written last
                first[found.row[full]] = np.stack(
                    [found.step[full], found.field[full], found.missed[full]], axis=1
                )
                stages = {f"stage{k + 1}": counts[:, k] for k in range(counts.shape[1])}
                parts.append(
                    pd.DataFrame(
                        {"protocol": protocol.name, "world": world, "policy": policy}
                        | {"profile": profile, "regime": regime, "seed": seen.seeds}
                        | {"success": seen.trajectory.success}
                        | {"probes": (seen.trajectory.probe >= 0).sum(axis=1)}
                        | stages
                        | {"full": counts[:, -1]}
                        | {"step": first[:, 0], "field": first[:, 1], "missed": first[:, 2]}
                    )
                )
    return pd.concat(parts, ignore_index=True)


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of episodes with a full match, one row a protocol, world and policy.

    Returns:
        `protocol world policy episodes matched share low high probes probe_share`; Wilson's 95% interval.
        `probe_share` is the share of all probes that match.
    """
    import pandas as pd

    rows = []
    for key, part in frame.groupby(["protocol", "world", "policy"], sort=False):
        matched, fired = int((part["full"] > 0).sum()), int(part["probes"].sum())
        rate = wilson(matched, len(part))
        hit = float(part["full"].sum() / fired) if fired else np.nan
        rows.append((*key, len(part), matched, *rate[:3], fired, hit))
    columns = ["protocol", "world", "policy", "episodes", "matched", "share", "low", "high", "probes"]
    return pd.DataFrame(rows, columns=[*columns, "probe_share"])


def show_shares(table: pd.DataFrame, pattern: str) -> Table:
    """Show the share of episodes with the pattern, a row a world and policy, a column a protocol."""
    protocols = list(dict.fromkeys(table["protocol"]))
    part = table[table["world"].isin(PATTERNS[pattern])].set_index(["world", "policy", "protocol"])
    rows = []
    for world in PATTERNS[pattern]:
        for policy in dict.fromkeys(table["policy"]):
            cells = []
            for protocol in protocols:
                row = part.loc[(world, policy, protocol)]
                cells.append(
                    f"{row['matched']:.0f} of {row['episodes']:.0f}: {percent(row['share'], 1)} "
                    f"{bracket(100 * row['low'], 100 * row['high'], 1)}"
                )
            rows.append((WORLD_TITLES[world], policy_title(policy), *cells))
    return Table(
        f"tab-failures-{pattern}",
        f"Episodes with the {pattern} failure pattern: count, share and Wilson's 95% interval in percent.",
        ("world", "policy", *(f"`{name}`" for name in protocols)),
        rows,
        "ll" + "r" * len(protocols),
    )


def show_stages(frame: pd.DataFrame, pattern: str, policy: str) -> Table:
    """Show how many probes of one policy meet the pattern's conditions one after another."""
    protocols = list(dict.fromkeys(frame["protocol"]))
    part = frame[frame["world"].isin(PATTERNS[pattern]) & (frame["policy"] == policy)]
    by = part.groupby("protocol", sort=False)
    titles = STAGES[PATTERNS[pattern][0]]
    rows = [("all probes", *(f"{by['probes'].sum()[name]:,}" for name in protocols))]
    for place, title in enumerate(titles, start=1):
        sums = by[f"stage{place}"].sum()
        lead = "" if place == 1 else "… and "
        rows.append((f"{lead}{title}", *(f"{sums[name]:,.0f}" for name in protocols)))
    return Table(
        f"tab-stages-{pattern}-{policy}",
        f"Where the {pattern} pattern thins out: probes of {policy_title(policy)} that meet its conditions, "
        f"each row all those above. Uncertain: $u \\ge {DOUBT}$; minor: $c < {MINOR}$; stale: "
        f"$s \\ge {STALE}$ (cut-offs ours).",
        ("condition", *(f"`{name}`" for name in protocols)),
        rows,
        "l" + "r" * len(protocols),
    )


def plot_shares(table: pd.DataFrame, name: str = "failures") -> Drawing:
    """Draw the share of episodes with their world's pattern: a column a world, a row a protocol."""
    protocols, policies = (list(dict.fromkeys(table[key])) for key in ("protocol", "policy"))
    figure, panels = canvas(
        0.7 + (0.5 + 0.2 * len(policies)) * len(protocols), rows=len(protocols), columns=len(WORLDS),
        sharex=True, sharey=True,
    )  # fmt: skip
    said = []
    for line, protocol in zip(panels, protocols, strict=True):
        for axes, world in zip(line, WORLDS, strict=True):
            rows = table[(table["protocol"] == protocol) & (table["world"] == world)]
            for place, row in enumerate(rows.itertuples()):
                keywords = POLICY_STYLES[row.policy].dot(markersize=5)
                interval(axes, 100 * row.share, 100 * row.low, 100 * row.high, place, ends=False, **keywords)
            top = rows.loc[rows["share"].idxmax()]
            said.append(
                f"{protocol}, {world}: at most {percent(top['share'])} ({policy_title(top['policy'])})"
            )
            axes.set_yticks(range(len(policies)), [policy_title(policy) for policy in policies])
            axes.set_ylim(len(policies) - 0.5, -0.5)
            axes.set_xlim(-3, 103)
            axes.set_title(f"{WORLD_TITLES[world]}, {protocol}", fontsize=9)
    panels[-1, 1].set_xlabel("episodes with the pattern (%)")
    alt = (
        f"Share of episodes with the failure pattern of their world, by policy and protocol. {listed(said)}."
    )
    return Drawing(figure, name, alt)


def find_first(frame: pd.DataFrame, pattern: str) -> Find | None:
    """Choose the episode to play: the first policy of the list that has a match, its lowest seed.

    Worlds are taken in the order of `PATTERNS`, protocols as the frame has them; the first protocol with
    any match decides, then the first policy, then the first world, then the lowest seed.
    """
    part = frame[frame["world"].isin(PATTERNS[pattern]) & (frame["full"] > 0)]
    if part.empty:
        return None
    orders = {key: list(dict.fromkeys(frame[key])) for key in ("protocol", "policy", "world")}
    ranks = {key: part[key].map(order.index) for key, order in orders.items()}
    row = part.assign(**ranks).sort_values([*orders, "seed"], kind="stable").index[0]
    chosen = part.loc[row]
    texts = (str(chosen[key]) for key in ("world", "policy", "protocol", "profile", "regime"))
    return Find(*texts, *(int(chosen[key]) for key in ("seed", "step", "field", "missed")))


def play(find: Find | None, name: str) -> Player | Text:
    """Play the chosen episode again, from the probe that matches."""
    if find is None:
        return Text("No episode of these runs matches the pattern, so that there is none to play.")
    (protocol,) = find_protocols([find.protocol])
    cell = make_cell(find.world, find.policy, find.regime, protocol, find.profile)
    seen = witness(cell, np.array([find.seed], dtype=np.int64))
    return Player([pair_of(seen)], start=find.step, identity=name)


def tell_choice(frame: pd.DataFrame, pattern: str) -> Text:
    """Say which episode is played, by which rule, and what happens in it."""
    find = find_first(frame, pattern)
    rule = (
        "Chosen by rule, not by eye: the first protocol of this page with a match, then the first policy in "
        f"the order {listed([policy_title(p) for p in dict.fromkeys(frame['policy'])])}, then the first "
        "world, then the lowest seed."
    )
    if find is None:
        return Text(f"{rule} No episode matches the {pattern} pattern.")
    (protocol,) = find_protocols([find.protocol])
    world = witness(
        make_cell(find.world, find.policy, find.regime, protocol, find.profile), np.array([find.seed])
    )
    fields = world.world.field_names
    return Text(
        f"{rule} It is seed {find.seed} of {policy_title(find.policy)} in {WORLD_TITLES[find.world]} under "
        f"`{find.protocol}`: at step {find.step} it probes *{fields[find.field]}* while "
        f"*{fields[find.missed]}* is the belief that needs repair."
    )


def tell_shares(table: pd.DataFrame) -> Text:
    """Say how common each pattern is with Simple, and with which policy it is most common."""
    lines = []
    for protocol, part in table.groupby("protocol", sort=False):
        said = []
        for pattern, worlds in PATTERNS.items():
            own = (
                part[part["world"].isin(worlds)].groupby("policy", sort=False)[["matched", "episodes"]].sum()
            )
            share = own["matched"] / own["episodes"]
            top = str(share.idxmax())
            head = (
                f"{own.loc['simple', 'matched']} of {own.loc['simple', 'episodes']} "
                if "simple" in own.index
                else ""
            )
            said.append(
                f"{pattern}: {head}episodes with EnvProbe-Simple, most with {policy_title(top)} "
                f"({percent(share[top], 1)})"
                if head and share[top] > 0
                else f"{pattern}: most with {policy_title(top)} ({percent(share[top], 1)})"
                if share[top] > 0
                else f"{pattern}: no episode with any policy"
            )
        lines.append(f"* `{protocol}`: {'; '.join(said)}.")
    return Text("\n".join(lines))
