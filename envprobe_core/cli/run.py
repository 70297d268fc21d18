"""``envprobe run`` and ``envprobe recompute``: make a run folder, and check one from its logs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from envprobe_core.cli import asking, clustering, modelling
from envprobe_core.errors import InputError

ALL = "all"
LISTED = 20  # disagreements that are spelled out
WIDTH = 200  # of the table where standard output is no terminal


Worlds = Annotated[
    list[str],
    typer.Option("--world", metavar="W", help="World; may be repeated; `all` for every one."),
]
Policies = Annotated[
    list[str],
    typer.Option("--policy", metavar="P", help="Policy; may be repeated; `all` for every one."),
]
Regime = Annotated[str, typer.Option("--regime", metavar="R", help="Stress regime.")]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="P",
        help="Protocol, also with switches turned, as in paper:clock=stands,end=success; may be repeated.",
        show_default="paper",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="A:B",
        help="Seeds A..B-1, a seed, or several of these with commas.",
        show_default="the regime's own; at S2 0:220, under released 42:262",
    ),
]
Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help="Probes an episode may fire.", show_default="horizon / 4"),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="Score from which a policy probes; for policies that have one.",
        show_default="1.5",
    ),
]


def run(
    world: Worlds,
    policy: Policies,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the run; made if it is not there.")
    ],
    regime: Regime = "S2",
    protocol: Protocols = None,
    seeds: Seeds = None,
    budget: Budget = None,
    threshold: Threshold = None,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="Profile of the simulated agent.")
    ] = "typical",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            max=256,
            help="Processes; changes nothing but speed.",
            show_default="every core, where that is faster",
        ),
    ] = None,
    batch_size: Annotated[
        int,
        typer.Option(
            "--batch-size",
            min=1,
            max=100_000,
            help="Episodes computed at a time; changes nothing but speed and memory.",
        ),
    ] = 1500,
    logs: Annotated[
        str,
        typer.Option(
            "--logs",
            metavar="[full|none|sample:N]",
            help="Step logs of every episode, of none, or of the first N seeds of each cell.",
        ),
    ] = "full",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON array, an object a cell, and nothing else.")
    ] = False,
    scheduler: clustering.Scheduler = None,
    scheduler_file: clustering.SchedulerFile = None,
    agent: modelling.Agent = modelling.SIMULATED,
    model: modelling.Model = None,
    judge_model: modelling.JudgeModel = None,
    base_url: modelling.BaseUrl = None,
    concurrency: modelling.Concurrency = None,
    max_cost: modelling.MaxCost = None,
    prices: modelling.Prices = None,
    store: modelling.Store = None,
    replay_only: modelling.ReplayOnly = False,
    replay: modelling.Replay = None,
    timeout: modelling.Timeout = None,
    attempts: modelling.Attempts = None,
) -> None:
    """Run policies in worlds and keep every step.

    DIR gets episodes.parquet (a row an episode), manifest.json (inputs, versions, hashes) and
    logs/ (a row a step, a file a cell). A run that was interrupted goes on where it
    stopped; a finished one is not repeated; a folder that holds something else is left alone.
    With `--agent openai` a language model acts: every answer is stored before it is used, so that the
    same command goes on after an interruption without paying twice, and calls.jsonl says what was asked.
    The key is read from OPENAI_API_KEY and appears nowhere. With `--scheduler` a Dask cluster computes,
    and the same folder comes of it; a language model's calls are made here all the same.
    `envprobe list` names the worlds, policies, protocols, regimes and profiles.
    """
    from envprobe_core.policies import POLICIES
    from envprobe_core.runs.folder import open_run
    from envprobe_core.runs.inputs import make_inputs
    from envprobe_core.runs.summary import summary_rows
    from envprobe_core.worlds import WORLDS

    options = modelling.ModelOptions(
        model,
        judge_model,
        base_url,
        concurrency,
        max_cost,
        prices,
        store,
        replay_only,
        replay,
        timeout,
        attempts,
    )
    asked = modelling.chosen_agent(agent, options, profile)
    if asked is not None and jobs is not None:
        raise InputError("--jobs is for the simulated agent; for a language model give --concurrency")
    cluster = clustering.chosen_scheduler(scheduler, scheduler_file)
    if cluster is not None and asked is not None:
        typer.echo("calls are made here, beside the store and the cap: the cluster is not used", err=True)
    elif cluster is not None and jobs is not None:
        raise InputError("--jobs is for processes of this machine; a cluster has its workers")
    inputs = make_inputs(
        every(world, WORLDS),
        every(policy, POLICIES),
        regime,
        protocol or ["paper"],
        profile,
        budget,
        threshold,
        seeds,
        logs,
        asked,
    )
    with open_run(out, inputs) as folder:
        if folder.finished:
            typer.echo(f"{out}: this run is finished already; nothing was repeated", err=True)
            summaries = folder.read()
        elif asked is not None:
            with asking.stopped_runs():
                summaries = asking.run_on_model(folder, options.service(asked, out))
        else:
            if cluster is not None:
                clustering.announce(cluster)
            with _lost_processes(), clustering.lost_clusters(), _progress("episodes") as show:
                folder.fill(jobs=jobs, batch_size=batch_size, progress=show, scheduler=cluster)
                summaries = folder.finish()
    rows = summary_rows(inputs.cells, summaries)
    if json:
        import orjson

        sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _print_table(rows)
        episodes = sum(own.n for own in summaries)
        acting = f"profile {inputs.profile}" if asked is None else f"model {asked.settings.model}"
        typer.echo(f"{len(rows)} cells, {episodes} episodes, {inputs.regime}, {acting}: {out}")
        if asked is not None:
            typer.echo(asking.say_calls(out))


def recompute(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")],
) -> None:
    """Compute every measure of a run again from its step logs alone.

    Exit code 0 if all agree with episodes.parquet and manifest.json; 1 if some do not, each named
    with file, seed, step and column; 2 if a log is damaged or cut short, or there is nothing to check.
    """
    from envprobe_core.runs.recompute import check_run

    with _lost_processes(), _progress("logs") as show:
        report = check_run(folder, progress=show)
    for text in report.disagreements[:LISTED]:
        typer.echo(f"envprobe: {text}", err=True)
    if report.disagreements:
        typer.echo(f"envprobe: {len(report.disagreements)} disagreements in {folder}", err=True)
        raise typer.Exit(1)
    typer.echo(report.text)


def every(names: list[str], known: Iterable[str]) -> list[str]:
    """Replace the word `all` by every name."""
    return [each for name in names for each in (known if name == ALL else [name])]


@contextmanager
def _lost_processes() -> Iterator[None]:
    """Say in one line that a process of ours was killed."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield
    except BrokenProcessPool:
        text = "a process was ended from outside, perhaps for lack of memory; give the command again"
        typer.echo(f"envprobe: {text}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the summary for people: rounded, intervals in brackets."""
    from rich.console import Console
    from rich.table import Table

    table = Table("world", "policy", "protocol", box=None, pad_edge=False)
    for heading in ["n", "accuracy", "terminal", "slots", "success", "probes", "useful", "onset", "never"]:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result hash", no_wrap=True)
    for row in rows:
        table.add_row(
            *(str(row[key]) for key in ("world", "policy", "protocol", "n")),
            _interval(row, "accuracy"),
            _number(row["accuracy_terminal"]),
            _number(row["accuracy_slot"]),
            _interval(row, "task_success"),
            _number(row["probes"], 2),
            _number(row["useful_probe_rate"]),
            _number(row["collapse_onset"], 2),
            str(row["onset_censored"]),
            str(row["result_hash"])[:12],
        )
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(table)


def _interval(row: dict[str, Any], name: str) -> str:
    ends = f" [{_number(row[f'{name}_low'])}, {_number(row[f'{name}_high'])}]"
    return _number(row[name]) + ends


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
