"""Agent profiles: the simulated agent's habits and errors, each a stated assumption.

Some profiles are defined here, others are files of `data/profiles/`: those that were fitted
(`calibration`), and those that were settled beforehand to be compared with them.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from envprobe_core.errors import InputError
from envprobe_core.sources import DATA

PROFILE_FOLDER = DATA / "profiles"
KINDS = ("stated", "fitted")
LEAST_ASSUMPTION = 20  # characters
WRITES = ("number", "true")
"""How an agent may write the values of tools; the engine reads the place."""
LATER_HABITS = ("importance", "contrary", "own_noise", "critical_once")
"""Habits younger than some kept runs and profiles, whose files and hashes stay as they are."""


@dataclass(frozen=True)
class AgentProfile:
    """How the simulated agent errs and reports; rates are probabilities, confidence is in percent."""

    name: str
    omit: float = 0.0  # share of news it fails to write down, per field and step
    overwrite: float = 0.0  # chance per step that it overwrites a random field
    slip: float = 0.0  # chance per step that it proposes a random action
    quit: float = 0.0  # chance per step that it takes its task for finished and waits from then on
    misreport: float = 0.0  # share of reports whose staleness is wrong
    hedge: float = 0.0  # share of reports with a low confidence (below 70)
    confidence: int = 95  # what it reports for what it has just written
    spread: int = 0  # how far below that a report may lie
    fade: int = 0  # how many percent a step confidence falls while nothing new is written
    single_report: bool = False  # reports one belief a step, the first the next action uses
    writes: str = "number"  # tool values as the number it sees, or as `true`
    keeps_open: bool = True  # keeps its list of open tools
    scribe: bool = False  # keeps nothing: copies what is in view, walks by its last five actions
    copies_gold: bool = False  # writes down the true state: an oracle
    lost: float = 0.0  # of a scribe: chance per step that it takes a random action of its plan
    loop: float = 0.0  # and that it repeats its last one
    critical: float = 1.0  # that it calls what it reports of high criticality, not medium
    risky: float = 0.0  # that it reports a medium risk
    names_goal: float = 1.0  # that its report names its goal, and not where it is
    asks: float = 0.0  # that it proposes a probe itself
    lists_all: bool = False  # it lists every tool as open, not its target alone, until it sees one loaded
    importance: float = 0.0  # how much its errors fall on what the task needs: 0 evenly, 1 as the weights are
    contrary: float = 0.0  # how far its stated confidence is turned round: 0 as held, .5 level, 1 reversed
    own_noise: bool = False  # it errs by luck of its own under each policy and budget
    critical_once: bool = False  # it settles once an episode, not at each step, how critical its reports are
    assumption: str = ""

    def __post_init__(self) -> None:
        """Refuse rates and percents outside their range."""
        for field in fields(AgentProfile):
            value, highest = getattr(self, field.name), {float: 1, int: 100}.get(type(field.default))
            if highest is not None and not 0 <= value <= highest:
                raise InputError(f"profile {field.name}: {value} is not in 0..{highest}")
        if self.spread > self.confidence:
            raise InputError(f"profile spread: {self.spread} exceeds confidence {self.confidence}")
        if self.writes not in WRITES:
            raise InputError(f"profile writes: {self.writes!r} is not 'number' or 'true'")

    @property
    def identity(self) -> dict[str, object]:
        """What logs and hashes carry besides its name; a language model's say who it is."""
        return {}

    def as_dict(self) -> dict[str, object]:
        """Every field by name, for manifests and pages; a later habit that is off goes without saying."""
        habits = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in habits.items() if name not in LATER_HABITS or value}


def as_record(profile: AgentProfile, kind: str) -> dict[str, Any]:
    """A profile as a file of `data/profiles/` holds it.

    >>> as_record(PROFILES["typical"], "assumed")["name"]
    'typical'
    """
    parameters = profile.as_dict()
    name, assumption = parameters.pop("name"), parameters.pop("assumption")
    return {"name": name, "kind": kind, "assumption": assumption, "parameters": parameters}


def read_record(path: Path) -> dict[str, Any]:
    """Read a profile's file and refuse what is damaged, incomplete, unknown or out of range.

    Args:
        path: a JSON file with `name` (the file's own), `kind`, `assumption`, `parameters` (every behaviour of
            `AgentProfile`) and, where the profile was fitted, `fit`.

    Raises:
        InputError: with the file's name and what is wrong with it.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        _check(record, path.stem)
        _profile_of(record)
    except (OSError, ValueError) as error:
        raise InputError(f"profile file {path.name}: {error}") from None
    return record


def _check(record: Any, name: str) -> None:
    wanted = as_record(AgentProfile(name), "stated")
    if not isinstance(record, dict) or not isinstance(record.get("parameters", {}), dict):
        raise InputError("it, or its `parameters`, is no JSON object")
    _same_keys("entry", record, {*wanted, "fit"} if record.get("kind") == "fitted" else set(wanted))
    if record["name"] != name:
        raise InputError(f"names the profile {record['name']!r}; its file must be called after it")
    if record["kind"] not in KINDS:
        raise InputError(f"kind {record['kind']!r} is none of {', '.join(KINDS)}")
    if not isinstance(record["assumption"], str) or len(record["assumption"]) <= LEAST_ASSUMPTION:
        raise InputError(f"its assumption must be a text of more than {LEAST_ASSUMPTION} characters")
    kinds = {field.name: type(field.default) for field in fields(AgentProfile)}
    later = {name for name in LATER_HABITS if name in record["parameters"]}
    _same_keys("parameter", record["parameters"], set(wanted["parameters"]) | later)
    for one, value in record["parameters"].items():
        kind = kinds[one]
        if type(value) is not kind and (kind, type(value)) != (float, int):
            raise InputError(f"parameter {one} is {value!r}, which is not of type {kind.__name__}")


def _same_keys(what: str, given: dict[str, Any], accepted: set[str]) -> None:
    for name in sorted(set(given) ^ accepted):
        fault = "is unknown" if name in given else "is missing"
        raise InputError(f"{what} {name!r} {fault}; accepted: {', '.join(sorted(accepted))}")


def _profile_of(record: dict[str, Any]) -> AgentProfile:
    return AgentProfile(record["name"], **record["parameters"], assumption=record["assumption"])


def read_profile(path: Path) -> AgentProfile:
    """Read the profile of a file; see `read_record` for what is refused."""
    return _profile_of(read_record(path))


def committed_profiles(folder: Path = PROFILE_FOLDER) -> tuple[AgentProfile, ...]:
    """The profiles of a folder, in the order of their names; none where there is no folder.

    >>> [profile.name for profile in committed_profiles()]
    ['calibrated', 'careful', 'overconfident', 'scribe-settled']
    """
    return tuple(read_profile(path) for path in sorted(folder.glob("*.json"), key=lambda path: path.stem))


def _scripted(name: str, writes: str, keeps_open: bool, assumption: str) -> AgentProfile:
    return AgentProfile(
        name,
        confidence=90,
        single_report=True,
        writes=writes,
        keeps_open=keeps_open,
        assumption="Follows a fixed script without errors and reports one belief; " + assumption,
    )


TYPICAL = AgentProfile(
    "typical",
    omit=0.15,
    overwrite=0.20,
    slip=0.10,
    quit=0.03,
    misreport=0.20,
    hedge=0.05,
    confidence=95,
    spread=10,
    fade=1,
    assumption=(
        "A language model that follows the format, misses about one update in seven, spoils a belief every "
        "fifth step, strays from its plan every tenth, stops early in three of a hundred steps, and is sure "
        "of nearly all it writes. Settled with No-Probe alone, so that neither success nor accuracy "
        "sits at a floor or a ceiling."
    ),
)

SCRIBE = AgentProfile(
    "scribe",
    confidence=90,
    single_report=True,
    keeps_open=False,
    scribe=True,
    lost=0.3,
    loop=0.2,
    assumption=(
        "A language model that is shown its observation and its last five actions, and no table: it copies "
        "what is in view, keeps nothing, never sees a probe's answer, and reports one belief, on its goal. "
        "Two rates, fitted to the accuracies printed for Periodic and to the confident-wrong rate."
    ),
)

HESITANT = replace(
    SCRIBE,
    name="scribe-hesitant",
    loop=0.35,
    critical=0.92,
    risky=0.5,
    names_goal=0.4,
    asks=0.3,
    lists_all=True,
    assumption=(
        "The scribe that proposes probes itself, often names no goal, now and then calls its belief less "
        "critical or its risk medium, and lists every tool as open until one is loaded. *Post-hoc*: its "
        "habits were chosen after the paper's figures had been seen, and so predict none of them."
    ),
)

PROFILES: dict[str, AgentProfile] = {
    profile.name: profile
    for profile in (
        TYPICAL,
        AgentProfile(
            "perfect",
            confidence=100,
            writes="true",
            assumption="Writes all that its observation shows and errs nowhere.",
        ),
        *committed_profiles(),
        SCRIBE,
        replace(
            SCRIBE,
            name="copy-gold",
            writes="true",
            copies_gold=True,
            assumption="Acts as the scribe does and writes down the true state: an oracle.",
        ),
        HESITANT,
        _scripted("scripted", "number", False, "writes numbers, leaves its open list empty."),
        _scripted("scripted-open", "number", True, "writes numbers, keeps its open list."),
        _scripted("scripted-true", "true", False, "writes True, leaves its open list empty."),
        _scripted("scripted-true-open", "true", True, "writes True, keeps its open list."),
    )
}
