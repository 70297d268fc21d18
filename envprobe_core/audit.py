"""The audit of confidently wrong beliefs: four estimators, and what confidence says about truth.

The four rows of the paper's table (`tab:pcw_audit`) as per-episode counts, so that a rate is a sum over a
sum and its interval is clustered by episode; the histogram of reported confidence, from which reliability,
ECE and AUC follow. book/definitions.md, "Metrics"; where A_t is used it is the accuracy that the protocol
watches (`tracks`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.confidence import CONFIDENT, confident_counts, held_beliefs
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.metrics import COLLAPSE, count_true
from envprobe_core.tracks import step_accuracy

SCAN = 0.5  # accuracy below which the high-confidence scan looks
SAMPLE = 5  # the smaller sample: seeds that this divides
LEVELS = 101  # reported confidence is a whole percent
BINS = 10

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def audit_counts(
    recording: Trajectory, cell: Cell, seeds: Ints, threshold: int = CONFIDENT
) -> dict[str, Ints]:
    """Count what the four estimators need, [row] each.

    Args:
        recording: a cell's episodes, with reports.
        cell: the cell.
        seeds: [row].
        threshold: percent from which a belief is confident.

    Returns:
        The counts of `confident_counts`; `low_steps low_consistent`: executed task actions at A_t < .6, and
        those before which the agent's self-check was consistent; `scan_beliefs scan_confident scan_wrong`:
        beliefs held at A_t < .5, the confident ones, the wrong among these; `sample_confident
        sample_wrong`: canonical counts on seeds that `SAMPLE` divides, 0 elsewhere; `wrong_known`: wrong
        beliefs whose value was known.
    """
    held = held_beliefs(recording, cell.protocol)
    accuracy = step_accuracy(recording, cell)
    counts = confident_counts(recording, cell.protocol, threshold)
    steps = recording.acted.shape[1]
    low = recording.acted & (accuracy[:, :steps] < COLLAPSE)
    scanned = (accuracy < SCAN)[..., None] & held.counted[..., None]
    confident = held.confident(threshold)
    known = held.belief != UNKNOWN
    sampled = seeds % SAMPLE == 0
    return counts | {
        "low_steps": low.sum(axis=1),
        "low_consistent": (low & consistent(recording.acted, recording.valid)).sum(axis=1),
        "scan_beliefs": count_true(scanned & known).sum(axis=1),
        "scan_confident": count_true(scanned & confident).sum(axis=1),
        "scan_wrong": count_true(scanned & confident & held.wrong).sum(axis=1),
        "sample_confident": np.where(sampled, counts["confident"], 0),
        "sample_wrong": np.where(sampled, counts["confident_wrong"], 0),
        "wrong_known": count_true(held.wrong & known).sum(axis=1),
    }


def consistent(acted: npt.NDArray[np.bool_], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Say before which steps the agent's self-check passes, [row, step].

    The simulated agent reports low risk unless its last own task action was invalid (ours: the paper does
    not say what its self-check asks); before its first action it reports low risk.
    """
    passes = np.ones(acted.shape, dtype=bool)
    for t in range(1, acted.shape[1]):
        passes[:, t] = np.where(acted[:, t - 1], valid[:, t - 1], passes[:, t - 1])
    return passes


def confidence_histogram(recording: Trajectory, cell: Cell) -> tuple[Ints, Ints]:
    """Count right and wrong known beliefs by reported confidence, [row, percent] each."""
    held = held_beliefs(recording, cell.protocol)
    used = held.counted[..., None] & (held.belief != UNKNOWN)
    row = np.broadcast_to(np.arange(len(used))[:, None, None], used.shape)
    place = row * LEVELS + held.confidence.astype(np.int64)
    shape = (len(used), LEVELS)
    right = np.bincount(place[used & ~held.wrong], minlength=shape[0] * LEVELS).reshape(shape)
    wrong = np.bincount(place[used & held.wrong], minlength=shape[0] * LEVELS).reshape(shape)
    return right, wrong


def reliability(right: Floats, wrong: Floats) -> dict[str, Floats]:
    """Sort beliefs into ten bins of reported confidence, [..., bin] each.

    Args:
        right: [..., percent], counts of right beliefs.
        wrong: [..., percent], counts of wrong beliefs.

    Returns:
        `count`, mean `confidence` (0..1) and share right `accuracy`; NaN where a bin is empty. The bins are
        0-9, ..., 80-89 and 90-100 percent.
    """
    total = right + wrong
    edges = np.arange(0, LEVELS - 1, LEVELS // BINS)
    count, hits, sure = (
        np.add.reduceat(part, edges, axis=-1) for part in (total, right, total * (np.arange(LEVELS) / 100))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"count": count, "confidence": sure / count, "accuracy": hits / count}


def expected_calibration_error(right: Floats, wrong: Floats) -> Floats:
    """Return ECE, [...]: the bins' gaps between confidence and share right, weighted by their counts.

    Source: Guo et al. (2017), equation 3, with ten bins of equal width.
    """
    bins = reliability(right, wrong)
    gap = np.where(bins["count"] > 0, np.abs(bins["accuracy"] - bins["confidence"]), 0.0)
    return (gap * bins["count"]).sum(axis=-1) / bins["count"].sum(axis=-1)


def area_under_curve(right: Floats, wrong: Floats) -> Floats:
    """Return the AUC of confidence as a sign of truth, [...]; .5 says nothing, NaN if one kind is absent.

    The chance that a right belief is reported with more confidence than a wrong one, ties counting half:
    Mann and Whitney's U over the product of the two counts.
    """
    below = np.cumsum(wrong, axis=-1) - 0.5 * wrong
    pairs = right.sum(axis=-1) * wrong.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, (right * below).sum(axis=-1) / pairs, np.nan)
