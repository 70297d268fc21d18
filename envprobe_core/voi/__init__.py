"""VoI (ours): a policy that weighs what an answer is expected to gain against the step it costs.

`knowledge` is what anybody may know of a world, `belief` the change-point belief about every field with its
hazards learned on the way, `value` the gain, the price and the decision.
"""

from envprobe_core.voi.value import Prober

__all__ = ["Prober"]
