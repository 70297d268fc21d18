"""Small instances on which a statement fails as printed, told with their computed numbers."""

from __future__ import annotations

from envprobe_core.markup import Text, number, percent, signed
from envprobe_core.theory import pure


def tell_conditions() -> Text:
    """List the small instances on which a statement fails as printed, with their numbers computed."""
    tells, slots = pure.neighbour_tells(), pure.stuck_agents_act_longest()
    harm, pair = pure.harmful_gains(), pure.redundant_pair()
    singles = max(pair[1], pair[2])
    return Text(
        "\n".join(
            [
                "* **Self-report bound.** Two fields, one coin: the first field's report tells the second "
                "field's "
                f"gain. Each field's own report tells nothing, so ε = {number(tells.epsilon)}; yet the "
                "rule that "
                f"reads both gains {number(tells.advantage)} more. *Missing:* given its own features, a "
                "field's gain "
                "must not depend on the features of others. With that condition ε suffices in place of 2ε.",
                f"* **Displacement.** {percent(slots.probability[0])} of episodes finish in "
                f"{slots.slots[0]} slots, "
                f"all effective; the rest flounder through {slots.slots[1]}. Success is "
                f"{number(slots.success)}, the "
                f"bound with η pooled over slots ({number(slots.pooled_share)}) is "
                f"{number(slots.bound(slots.pooled_share))}. *Missing:* η must bound the share *given N*; "
                "with the "
                f"two shares apart the bound is {number(slots.bound(slots.effective / slots.slots))}.",
                f"* **Uniform probes.** Two harmful fields with gains {signed(harm[0], 0)} and "
                f"{signed(harm[1], 0)}: "
                f"the mean {signed(harm.mean(), 0)} over the best {signed(harm.max(), 0)} is "
                f"{number(harm.mean() / harm.max(), 0)}, not below 1. *Missing:* some gain must be "
                "positive, which "
                "monotony would give.",
                "* **Repair bound.** Two fields that only help together: either alone gains "
                f"{number(singles, 0)}, both "
                f"{number(pair[3], 0)}. A score that is as good as the best at the first step is no better "
                "than "
                "idle there. The lemma is right under its assumption; this is what the assumption forbids.",
                f"* **Frontier.** With η = .5 and K = 1 the bound on success is "
                f"{number(pure.displacement_bound(0.5, 30, 1))} at 30 slots and "
                f"{number(pure.displacement_bound(0.5, 2, 1))} at 2: more probes leave it where it is. And "
                "bounds "
                "that move apart do not make the values move. *Missing:* the success bound must bind, η (H "
                "− P) < K, "
                "and both bounds must be close to what they bound.",
            ]
        )
    )
