"""``envprobe run`` and ``envprobe recompute``: make a run folder, and check one from its logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from envprobe_core.cli import modelling, options
from envprobe_core.cli.options import File, option
from envprobe_core.errors import InputError, in_one_line

LISTED = 20  # disagreements that are spelled out
WIDTH = 200  # of the table where standard output is no terminal


@options.expanded
def run(
    grid: options.Grid,
    out: option(Path, "--out", "Folder of the run; made if it is not there.", "DIR"),
    profile: options.Profile = "typical",
    jobs: options.Jobs = None,
    batch_size: option(
        int,
        "--batch-size",
        "Episodes handed to a process at a time; changes nothing but speed and memory.",
        min=1,
        max=100_000,
    ) = 1500,
    logs: option(
        str,
        "--logs",
        "Step logs of every episode, of none, or of the first N seeds of each cell.",
        "[full|none|sample:N]",
    ) = "full",
    source: option(
        File, "--from", "Repeat the run that a manifest.json, or its folder, states.", "MANIFEST"
    ) = None,
    json: options.Json = False,
    cluster: options.Cluster = options.Cluster(),  # noqa: B008  (frozen)
    agent: modelling.Agent = modelling.SIMULATED,
    model: modelling.ModelOptions = modelling.ModelOptions(),  # noqa: B008
) -> None:
    """Run policies in worlds and keep every step.

    DIR gets episodes.parquet (a row an episode), manifest.json (inputs, versions, hashes) and
    logs/ (Parquet, a row a step, a file a cell). A run that was interrupted goes on where it
    stopped; a finished one is not repeated; a folder that holds something else is left alone.
    With --json: an array, an object a cell.
    With `--agent openai` a language model acts: every answer is stored before it is used, so that the
    same command goes on after an interruption without paying twice, and calls.jsonl says what was asked.
    The key is read from OPENAI_API_KEY and appears nowhere. With `--scheduler` a Dask cluster computes,
    and the same folder comes of it; a language model's calls are made here all the same.
    `envprobe list` names the worlds, policies, protocols, regimes and profiles.
    """
    from envprobe_core.runs.folder import open_run
    from envprobe_core.runs.inputs import inputs_of
    from envprobe_core.runs.summary import summary_rows

    before = None
    if source is not None:
        before = _stated(
            source, out, grid, profile != "typical" or logs != "full" or agent != modelling.SIMULATED
        )
        inputs = inputs_of(before)
        asked = inputs.agent
        modelling.refuse_others(model, asked, source)
    else:
        asked = modelling.chosen_agent(agent, model, profile)
        inputs = grid.inputs(profile, logs, asked)
    if asked is not None and jobs is not None:
        raise InputError("--jobs is for the simulated agent; for a language model give --concurrency")
    scheduler = cluster.address()
    if scheduler is not None and asked is not None:
        typer.echo("calls are made here, beside the store and the cap: the cluster is not used", err=True)
    elif scheduler is not None and jobs is not None:
        raise InputError("--jobs is for processes of this machine; a cluster has its workers")
    with open_run(out, inputs) as folder:
        if folder.finished:
            typer.echo(f"{out}: this run is finished already; nothing was repeated", err=True)
            summaries = folder.read()
        elif asked is not None:
            with modelling.stopped_runs():
                summaries = modelling.run_on_model(folder, model.service(asked, out))
        else:
            if scheduler is not None:
                options.announce(scheduler)
            with options.told_losses(), options.progress_bar("episodes") as show:
                folder.fill(jobs=jobs, batch_size=batch_size, progress=show, scheduler=scheduler)
                summaries = folder.finish()
        result = folder.manifest["result_hash"]
    rows = summary_rows(inputs.cells, summaries)
    if json:
        options.print_json(rows)
        _compare(before, result)
        return
    _print_table(rows)
    episodes = sum(own.n for own in summaries)
    acting = f"profile {inputs.profile}" if asked is None else f"model {asked.model}"
    typer.echo(f"{len(rows)} cells, {episodes} episodes, {inputs.regime}, {acting}: {out}")
    if asked is not None:
        typer.echo(modelling.say_calls(out))
    _compare(before, result)


def _stated(source: Path, out: Path, grid: options.Grid, more: bool) -> dict[str, Any]:
    """Read the manifest of a run to repeat, and say by which engine it was made if that is another.

    Raises:
        InputError: if there is none, if it is to be repeated in its own folder, or if more is asked for.
    """
    from envprobe_core.runs.inputs import inputs_of
    from envprobe_core.runs.manifest import MANIFEST, first_difference, new_manifest, read_manifest

    if more or grid != options.Grid():
        raise InputError(
            "--from states the whole run; beside it stand --out, --jobs, --json, and who answers"
        )
    if not source.is_dir() and source.name != MANIFEST:
        raise InputError(f"--from {source}: neither a run's folder nor its {MANIFEST}")
    folder = source if source.is_dir() else source.parent
    if out.resolve() == folder.resolve():
        raise InputError(f"--out {out}: is the run itself; give another folder")
    manifest = read_manifest(folder)
    if difference := first_difference(manifest, new_manifest(inputs_of(manifest))):
        typer.echo(in_one_line(f"{source} was made otherwise ({difference})"), err=True)
    return manifest


def _compare(before: dict[str, Any] | None, result: str) -> None:
    """Say whether a repeated run came to the same; exit code 1 if not."""
    if before is None or not before["finished"]:
        return
    if before["result_hash"] != result:
        typer.echo(f"envprobe: other results: {before['result_hash']} before, {result} now", err=True)
        raise typer.Exit(1)
    typer.echo("every result is the same as before", err=True)


def recompute(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")],
) -> None:
    """Compute every measure of a run again from its step logs alone.

    Exit code 0 if all agree with episodes.parquet and manifest.json; 1 if some do not, each named
    with file, seed, step and column; 2 if a file is damaged or cut short, or there is nothing to check.
    """
    from envprobe_core.runs.recompute import check_run

    with options.told_losses(), options.progress_bar("logs") as show:
        report = check_run(folder, progress=show)
    for text in report.disagreements[:LISTED]:
        typer.echo(f"envprobe: {in_one_line(text)}", err=True)
    if report.disagreements:
        typer.echo(f"envprobe: {len(report.disagreements)} disagreements in {folder}", err=True)
        raise typer.Exit(1)
    typer.echo(report.text)


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the summary for people: rounded, intervals in brackets."""
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
    options.console(WIDTH).print(table)


def _interval(row: dict[str, Any], name: str) -> str:
    ends = f" [{_number(row[f'{name}_low'])}, {_number(row[f'{name}_high'])}]"
    return _number(row[name]) + ends


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
