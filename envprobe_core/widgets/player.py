"""The episode player: recorded episodes to step through, two policies on one seed side by side.

In the book it holds the episodes it was given. In JupyterLab the reader chooses any other, which the engine
then runs; a setting that cannot be run is refused in the widget, in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.figures import DARK, POLICY_STYLES, WORLD_TITLES, Style, policy_title
from envprobe_core.metrics import COLLAPSE
from envprobe_core.player.packing import ALPHABET
from envprobe_core.player.pairs import Setting, record_pair
from envprobe_core.player.recording import OUTCOMES
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.regimes import REGIMES
from envprobe_core.show.episode import TERM_COLOURS
from envprobe_core.widgets.host import Widget


class Player(Widget):
    """Episodes to watch."""

    module = "player"

    def __init__(
        self,
        pairs: Sequence[Mapping[str, Any]] = (),
        *,
        live: bool = False,
        policies: Sequence[Policy] = (),
        setting: Setting | None = None,
        identity: str = "player",
    ) -> None:
        """Show pairs of recorded episodes, or a form to choose one.

        Args:
            pairs: what `pairs.record_pair` returns, with `group` and `label` for the menu of a static page.
            live: whether the reader may choose any episode; needs a kernel.
            policies: a reader's own, beside those of the companion.
            setting: the first episode shown where no pairs are given.
            identity: an id that no other widget of the page has.
        """
        self._own = {policy.name: policy for policy in policies}
        start = setting or Setting(own=self._own)
        shown = list(pairs) or [record_pair(start)]
        state = {
            "alphabet": ALPHABET,
            "pairs": shown,
            "outcomes": OUTCOMES,
            "collapse": COLLAPSE,
            "inks": {term: [colour, DARK[colour]] for term, colour in TERM_COLOURS.items()},
            "marks": {name: _mark(style) for name, style in POLICY_STYLES.items()},
        }
        if live:
            state["choices"] = _choices(start, self._own)
        super().__init__(state, identity=identity, fallback=_fallback(shown), live=live)
        if live:
            self.on_msg(self._receive)

    def _receive(self, _: object, content: Mapping[str, Any], buffers: object) -> None:
        """Send the answer to a question of the front end."""
        if content.get("kind") == "ask":
            self.send(self.answer(content))

    def answer(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the episode that a message of the front end asks for, or why there is none.

        Args:
            content: `request`, a number that the answer carries too, and `setting` (see `read_setting`).
        """
        reply = {"kind": "answer", "request": content.get("request")}
        try:
            return {**reply, "pair": record_pair(read_setting(content["setting"], self._own))}
        except InputError as error:
            return {**reply, "error": str(error)}


def read_setting(given: Mapping[str, str], own: Mapping[str, Policy]) -> Setting:
    """Read what a reader chose in the form.

    Args:
        given: texts by name: `world first second protocol regime profile seed budget threshold`.
        own: a reader's own policies by name.

    Raises:
        InputError: if a number is none, or a seed is not one seed.
    """
    seeds = parse_seeds(given["seed"])
    if len(seeds) != 1:
        raise InputError(f"seed {given['seed']!r} names {len(seeds)} episodes; accepted: one whole number")
    return Setting(
        given["world"], (given["first"], given["second"]), int(seeds[0]), given["regime"], given["protocol"],
        given["profile"], _number("budget", given["budget"], int),
        _number("threshold", given["threshold"], float), own,
    )  # fmt: skip


def _number(name: str, text: str, kind: type[int] | type[float]) -> Any:
    """Read a number, or None for an empty text."""
    if not text.strip():
        return None
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{name} {text!r} is not {what}; leave it empty for the default") from None


def _mark(style: Style) -> dict[str, Any]:
    dark = DARK.get(style.colour, "currentColor")
    colour = style.colour if style.colour in DARK else "currentColor"
    return {"colour": colour, "dark": dark, "marker": style.marker, "filled": style.filled}


def _choices(start: Setting, own: Mapping[str, Policy]) -> dict[str, Any]:
    """List what the form offers, as (value, text), and what it shows at first."""
    policies = [(name, policy_title(name)) for name in POLICIES]
    policies += [(name, policy.title) for name, policy in own.items()]
    return {
        "world": list(WORLD_TITLES.items()),
        "first": policies,
        "second": policies,
        "protocol": [(name, name) for name in dict.fromkeys((*PROTOCOLS, start.protocol))],
        "regime": [(name, f"{name}: {regime.title}") for name, regime in REGIMES.items()],
        "profile": [(name, name) for name in PROFILES],
        "setting": {
            "world": start.world,
            "first": start.policies[0],
            "second": start.policies[-1],
            "protocol": start.protocol,
            "regime": start.regime,
            "profile": start.profile,
            "seed": start.seed,
            "budget": start.budget,
            "threshold": start.threshold,
        },
    }


def _fallback(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Tell the first episode to readers without JavaScript."""
    pair = pairs[0]
    lines = ["The episode player needs JavaScript. Here is its first episode in words.", pair["about"]]
    lines.append(pair["parting"])
    for run in pair["runs"]:
        lines += [f"{run['title']}, step {t}: {said}" for t, said in enumerate(run["sentence"])]
    return "\n".join(lines)
