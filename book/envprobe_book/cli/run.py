"""Commands of the experiment: run, recompute, claims, compile, list."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envprobe_book.cli import model as models
from envprobe_book.cli import options
from envprobe_book.cli.options import file, whole
from envprobe_core.errors import InputError, StoppedError, counted, in_one_line, look_up

if TYPE_CHECKING:
    from envprobe_core.runs.manifest import Manifest

SUMMARY = {  # the columns of a run's summary, as people read it
    "world": "{world}", "policy": "{policy}", "protocol": "{protocol}", "n": "{n}",
    "accuracy": "{accuracy:.3f} [{accuracy_low:.3f}, {accuracy_high:.3f}]",
    "terminal": "{accuracy_terminal:.3f}", "slots": "{accuracy_slot:.3f}",
    "success": "{task_success:.3f} [{task_success_low:.3f}, {task_success_high:.3f}]",
    "probes": "{probes:.2f}", "useful": "{useful_probe_rate:.3f}", "onset": "{collapse_onset:.2f}",
    "never": "{onset_censored}", "result hash": "{result_hash:.12}",
}  # fmt: skip
READ = {  # of a language model's updates
    "unread": "{unread}", "invalid": "{invalid_share:.3f}", "loose": "{loose_share:.3f}",
}  # fmt: skip

STYLES = {  # verdicts, and their colours
    "holds": "green", "holds, other size": "cyan", "inconclusive": "yellow", "no effect": "yellow",
    "negligible": "yellow", "cannot differ": "dim", "reverses": "red", "near": "green", "differs": "yellow",
    "as printed": "green", "not as printed": "yellow", "input": "magenta", "not tested": "dim",
}  # fmt: skip
ABOUT_PROTOCOLS = {
    "paper": "the paper's text: the first belief equals gold (Algorithm 1)",
    "observed": "the text, but the first belief holds only what the first observation shows",
    "released": "the paper's public code (commit 3266b54)",
}
LISTS = ("worlds", "policies", "protocols", "regimes", "profiles", "sections")


def run(
    *,
    world: options.World = None,
    policy: options.Policies = None,
    regime: options.Regime = "S2",
    protocol: options.Protocol = None,
    seeds: options.Seeds = None,
    budget: options.Budget = None,
    threshold: options.Threshold = None,
    scheduler: options.Scheduler = None,
    scheduler_file: options.SchedulerFile = None,
    model: models.Model = None,
    judge_model: models.JudgeModel = None,
    base_url: models.BaseUrl = None,
    prompts: models.Prompts = None,
    reasks: models.Reasks = None,
    max_tokens: models.MaxTokens = None,
    extra_body: models.ExtraBody = None,
    concurrency: models.Concurrency = None,
    max_cost: models.MaxCost = None,
    prices: models.Prices = None,
    store: models.Store = None,
    replay_only: models.ReplayOnly = False,
    replay: models.Replay = None,
    timeout: models.Timeout = None,
    attempts: models.Attempts = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=file, help="Folder of the run; made if it is not there.")
    ],
    profile: options.Profile = "typical",
    jobs: options.Jobs = None,
    logs: Annotated[
        str,
        typer.Option(
            metavar="[full|none|sample:N]",
            help="Step logs of every episode, of none, or of the first N seeds of each condition.",
        ),
    ] = "full",
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MANIFEST",
            parser=file,
            help="Repeat the run that a manifest.json, or its folder, states.",
        ),
    ] = None,
    json: options.Json = False,
    agent: models.Agent = models.SIMULATED,
) -> None:
    """Run policies in worlds and keep every step.

    DIR gets episodes.parquet (a row an episode), manifest.json (inputs, versions, hashes) and
    logs/ (Parquet, a row a step, a file a condition). A run that was interrupted is run again by the
    same command; a finished one is not repeated; a folder that holds something else is left alone.
    With --json: an array, an object a condition.
    With `--agent openai` a language model acts: every answer is stored before it is used, so that the
    same command goes on after an interruption without paying twice, and calls.jsonl says what was asked.
    The key is read from OPENAI_API_KEY and appears nowhere. With `--scheduler` a Dask cluster computes,
    with the same folder as result; a language model's calls are still made here.
    `envprobe list` names the worlds, policies, protocols, regimes and profiles.
    """
    from envprobe_core.runs.folder import open_run
    from envprobe_core.runs.tables import summary_rows

    grid = options.Grid(world, policy, regime, protocol, seeds, budget, threshold)
    given = models.ModelOptions(
        model, judge_model, base_url, prompts, reasks, max_tokens, extra_body, concurrency, max_cost, prices,
        store, replay_only, replay, timeout, attempts,
    )  # fmt: skip
    before = None
    if from_ is None:
        asked = models.chosen_agent(agent, given, profile)
        inputs = grid.inputs(profile, logs, asked)
    elif grid == options.Grid() and (profile, logs, agent) == ("typical", "full", models.SIMULATED):
        before = _stated(from_, out)
        inputs, asked = before.inputs, before.inputs.agent
        models.refuse_others(given, asked, from_)
    else:
        rest = "beside it stand only --out, --jobs, --json, a cluster, and where and how a model answers"
        raise InputError(f"--from states the whole run; {rest}")
    if asked is not None and jobs is not None:
        raise InputError("--jobs is for the simulated agent; for a language model give --concurrency")
    if given.replay is not None:
        models.refuse_unheld(given.replay, inputs)
    cluster = options.address_of(scheduler, scheduler_file)
    if cluster is not None and asked is not None:
        typer.echo("calls are made here, next to the store and the cap; the cluster is not used", err=True)
    elif cluster is not None and jobs is not None:
        raise InputError("--jobs is for processes of this machine; a cluster has its workers")
    with open_run(out, inputs) as folder:
        if folder.manifest.finished:
            episodes = folder.read()
            typer.echo(f"{out}: this run is finished already; nothing was repeated", err=True)
        elif asked is not None:
            episodes = models.run_on_model(folder, given.service(asked, out))
        else:
            with options.cluster_at(cluster) as executor, options.progress_bar("episodes") as show:
                folder.fill(jobs=jobs, executor=executor, progress=show)
                episodes = folder.finish()
        result = folder.manifest.result_hash
    rows = summary_rows(inputs.conditions, episodes)
    if json:
        options.print_json(rows)
    else:
        numbers = [{key: math.nan if value is None else value for key, value in row.items()} for row in rows]
        heads = SUMMARY if asked is None else SUMMARY | READ
        conditions = ([text.format(**row).replace("nan", "-") for text in heads.values()] for row in numbers)
        options.print_table("", [*heads][:3], [*heads][3:], conditions, width=200)
        acting = f"profile {inputs.profile}" if asked is None else f"model {asked.model}"
        ran = f"{counted(len(rows), 'condition')}, {counted(sum(row['n'] for row in rows), 'episode')}"
        typer.echo(f"{ran}, {inputs.regime}, {acting}: {out}")
        if asked is not None:
            typer.echo("\n".join(models.say_calls(out)))
    if before is not None and before.finished:
        if before.result_hash != result:
            raise StoppedError(f"the results differ: {before.result_hash} before, {result} now")
        typer.echo("every result is the same as before", err=True)


def _stated(source: Path, out: Path) -> Manifest:
    """Read the manifest of a run to repeat, and say if another engine made it."""
    from envprobe_core.runs.manifest import MANIFEST, begun, differences, read_manifest

    if not source.is_dir() and source.name != MANIFEST:
        raise InputError(f"--from {source}: neither a run's folder nor its {MANIFEST}")
    folder = source if source.is_dir() else source.parent
    if out.resolve() == folder.resolve():
        raise InputError(f"--out {out}: is the run itself; give another folder")
    manifest = read_manifest(folder)
    if difference := next(differences(manifest, begun(manifest.inputs)), None):
        typer.echo(in_one_line(f"{source} was made differently ({difference})"), err=True)
    return manifest


def recompute(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")],
) -> None:
    """Compute every measure of a run again from its step logs, and run a simulated run anew.

    Exit code 0 if all agree with episodes.parquet and manifest.json; 1 if some do not, each named
    with file, seed, step and column; 2 if a file is damaged or cut short, or there is nothing to check.
    """
    from envprobe_core.runs.recompute import check_run

    with options.progress_bar("logs") as show:
        wrong, checked = check_run(folder, progress=show)
    options.stop_at(wrong, "disagreement", folder)
    typer.echo(checked)


def claims(
    *,
    json: options.Json = False,
    profile: options.Profile = "typical",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P",
            show_default="as written, partial start, as released",
            help="Protocol; may be repeated.",
        ),
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="A:B", help="Seeds A..B-1 of the regime; others run on their own.")
    ] = "0:220",
    regime: Annotated[
        str, typer.Option(metavar="R", help="Ask claims about S2 of this regime instead.")
    ] = "S2",
    section: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only claims of this section; may be repeated.")
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(metavar="N", parser=whole(100, 1_000_000), help="Bootstrap resamples. [100..1000000]"),
    ] = 10_000,
    jobs: options.Jobs = None,
) -> None:
    """Run the paper's claims and judge each under each protocol.

    With --json: one object a claim and protocol, with the keys id, source, statement, paper, ours, protocol,
    profile, interval, verdict and section. Numbers are in the claim's own unit; `interval` is the adjusted
    one that decides; a missing value is null. Exit code 2 if a name or value is not accepted.
    """
    from envprobe_book.analyses.scoreboard import SIGNS, as_records, load_scoreboard
    from envprobe_book.claims.paper_items import place
    from envprobe_core.protocols import PROTOCOLS

    def report(text: str) -> None:
        if not json and sys.stderr.isatty():
            print(f"{text} ...", file=sys.stderr)

    def told(value: float | None, verdict: str = "") -> str:
        number = "" if value is None or value != value else f"{value:.4g}".replace("-", "−")
        return f"[{STYLES[verdict]}]{SIGNS[verdict]} {verdict}[/] {number}" if verdict else number

    chosen = tuple(section or ()), tuple(protocol or PROTOCOLS)
    workers = min(jobs or 1, options.CORES)
    board = load_scoreboard(*chosen, profile, seeds, regime, resamples, workers, report=report)
    if json:
        options.print_json(as_records(board))
        return
    under = list(dict.fromkeys(board["protocol"]))
    for name, part in board.groupby("section", sort=False):
        rows = []
        for _, own in part.groupby("claim", sort=False):
            first = own.iloc[0]
            judged = [told(None if row.verdict == "not tested" else row.estimate, row.verdict)
                      for row in own.itertuples()]  # fmt: skip
            rows.append([first["statement"], place(first["source"]), told(first["paper_value"]), *judged])
        options.print_table(str(name), ["claim", "where"], ["printed", *under], rows, width=180)
    title = f"{board['claim'].nunique()} claims, profile {board['profile'].iloc[0]} (simulated agent)"
    counts = board.groupby(["verdict", "protocol"]).size()
    rows = [[told(None, one), *(str(counts.get((one, name), 0)) for name in under)] for one in STYLES]
    options.print_table(title, ["verdict"], under, rows, width=180)


def compile_engine() -> None:
    """Compile the engine and keep it; whatever needs it would otherwise compile its part at first use."""
    from envprobe_book.compilation import compile_everything
    from envprobe_core.compiled.compiled_files import cache_folder, remove_damaged
    from envprobe_core.compiled.numba_support import INTERPRETED

    folder = cache_folder()
    if INTERPRETED or folder is None:
        why = "NUMBA_DISABLE_JIT is set" if INTERPRETED else "no folder can be written to"
        print(f"nothing is compiled ahead of time: {why}")
        return
    remove_damaged(folder)
    print("compiling the engine for the three worlds, once; about a minute ...", end=" ", flush=True)
    before, begin = set(folder.rglob("*.nbc")), time.monotonic()
    compile_everything()
    took = f"{time.monotonic() - begin:.0f} s"
    print(f"done in {took}" if set(folder.rglob("*.nbc")) - before else "it was there already")


def list_names(
    what: Annotated[
        str | None, typer.Argument(metavar=f"[{'|'.join(LISTS)}]", help="What; all if left out.")
    ] = None,
) -> None:
    """List worlds, policies, protocols, regimes, profiles and sections."""
    for kind in LISTS if what is None else [look_up("list", what, dict(zip(LISTS, LISTS, strict=True)))]:
        heads, *rows = _listed(kind)
        turning = "a switch is turned behind a colon: paper:clock=stands,end=success"
        options.print_table(kind, heads, (), rows, caption=turning if kind == "protocols" else None)


def _listed(kind: str) -> Iterable[Iterable[str]]:
    """Yield the heads of a list, and then its rows."""
    from rich.markup import escape

    from envprobe_book.reproduce.sections import find_sections
    from envprobe_core.agents.profiles import PROFILES, TYPICAL
    from envprobe_core.policies import KINDS, POLICIES, THRESHOLD
    from envprobe_core.protocols import PAPER, PROTOCOLS, SWITCHES, switch_values
    from envprobe_core.regimes import REGIMES
    from envprobe_core.worlds import MODULES, make_world

    if kind == "worlds":
        yield "name", "title", "fields (S1/S2/S3)", "actions", "what it is"
        for name, module in MODULES.items():  # a reader's own among them
            worlds = [make_world(name, REGIMES[regime], PAPER) for regime in ("S1", "S2", "S3")]
            sizes = (" / ".join(str(getattr(one, part)) for one in worlds) for part in ("fields", "actions"))
            lines = (module.__doc__ or "").splitlines()
            about = next((line for line in lines if line.startswith("Description: ")), "-")
            yield name, module.TITLE, *sizes, about.removeprefix("Description: ")
    elif kind == "policies":
        yield "name", "title", "score", "threshold", "what it does"
        for name, policy in POLICIES.items():
            terms = "+".join(policy.terms or ()) or "-"
            more = f"; repeats the probes of {policy.replays}" if policy.replays else ""
            more += "; sees gold" if policy.sees_gold else ""
            more += "" if policy.answered else "; the answer is withheld"
            threshold = str(THRESHOLD) if policy.has_threshold else "-"
            yield name, policy.title, terms, threshold, KINDS[policy.rule.kind] + more
    elif kind == "protocols":  # the first value of a switch is the text's
        yield "switch", *PROTOCOLS, "accepted"
        yield "", *(ABOUT_PROTOCOLS.get(name, "") for name in PROTOCOLS), ""
        for switch in SWITCHES:
            values = (getattr(protocol, switch) for protocol in PROTOCOLS.values())
            yield switch, *values, " ".join(switch_values(switch))
    elif kind == "regimes":
        levels, sizes = ("complexity", "density", "mutation"), ("horizon", "budget", "seeds")
        yield "name", "what it is", *levels, "observations", *sizes
        for name, regime in REGIMES.items():
            own = (("low", "medium", "high")[getattr(regime, level)] for level in levels)
            numbers = str(regime.horizon), str(regime.budget), "{}:{}".format(*regime.seeds)
            yield name, regime.title, *own, regime.observation, *numbers
    elif kind == "profiles":
        yield "name", "what it assumes"
        for name, profile in PROFILES.items():
            yield f"{name} (default)" if profile is TYPICAL else name, profile.assumption
    else:
        yield "name", "title"
        try:
            for name, section in find_sections().items():
                yield escape(name), escape(in_one_line(section.title))
        except InputError as error:  # the package without its checkout
            yield "-", escape(in_one_line(str(error)))
