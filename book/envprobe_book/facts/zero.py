"""What a table that never changes is right about, and what an agent is whose probes are not answered."""

from envprobe_book.facts.registry import Columns, fact
from envprobe_book.facts.replay import Witnessed
from envprobe_core.zero import logged_accuracy, placebo_zero_of, zero_accuracy, zero_of


@fact("zero")
def what_a_constant_scores(seen: Witnessed) -> Columns:
    """Measure the accuracy of the best table that never changes, A0, by the protocol's own measure."""
    return [zero_accuracy(seen.condition, zero_of(seen.condition), seen.trajectory)]


@fact("zero_logged")
def what_a_constant_with_a_log_scores(seen: Witnessed) -> Columns:
    """Measure the accuracy at the end of that table with what the agent's own log tells written over it."""
    return [logged_accuracy(seen.condition, zero_of(seen.condition), seen.trajectory)]


@fact("placebo")
def what_the_steps_alone_score(seen: Witnessed) -> Columns:
    """Measure the accuracy of the yoked placebo: the same probes at the same steps, without answers."""
    return [seen.placebo.measures["accuracy"]]


@fact("placebo_zero")
def what_a_constant_scores_beside_the_placebo(seen: Witnessed) -> Columns:
    """Measure the accuracy of the best table that never changes in the yoked placebo's episodes."""
    return [zero_accuracy(seen.condition, placebo_zero_of(seen.condition), seen.placebo)]
