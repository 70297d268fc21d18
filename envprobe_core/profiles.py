"""Agent profiles: the simulated agent's habits and errors, each a stated assumption."""

from __future__ import annotations

from dataclasses import dataclass, fields

from envprobe_core.errors import InputError

_RATES = ("omit", "overwrite", "slip", "quit", "misreport", "hedge")


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
    assumption: str = ""

    def __post_init__(self) -> None:
        """Refuse rates and percents outside their range."""
        for name in _RATES:
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(f"profile {name}: {getattr(self, name)} is not in 0..1")
        for name in ("confidence", "spread", "fade"):
            if not 0 <= getattr(self, name) <= 100:
                raise InputError(f"profile {name}: {getattr(self, name)} is not in 0..100")
        if self.spread > self.confidence:
            raise InputError(f"profile spread: {self.spread} exceeds confidence {self.confidence}")
        if self.writes not in ("number", "true"):
            raise InputError(f"profile writes: {self.writes!r} is not 'number' or 'true'")

    def as_dict(self) -> dict[str, object]:
        """Return every field by name, for manifests and pages."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


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
        _scripted("scripted", "number", False, "writes numbers, leaves its open list empty."),
        _scripted("scripted-open", "number", True, "writes numbers, keeps its open list."),
        _scripted("scripted-true", "true", False, "writes True, leaves its open list empty."),
        _scripted("scripted-true-open", "true", True, "writes True, keeps its open list."),
    )
}
