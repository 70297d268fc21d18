"""Algorithm 1 of the paper (EnvProbe-Simple), line by line in plain Python: begin to read the core here.

The compiled kernel (`engine.kernel`) is this, made fast: both give the same digests, which tests compare in
every world, for every policy of the paper and under every named protocol.

>>> environment = make_environment("tooldag")
>>> recording = play_episode(environment, SimulatedAgent(environment), EnvProbeSimple(), seed=0)
>>> recording.probe[0, :8].tolist()  # the field probed at each step, -1 where the agent acts
[0, 9, 4, 0, 9, 5, 0, -1]
>>> round(recording.measures["accuracy"].item(), 3), recording.measures["success"].item()
(0.926, False)
"""

import numpy as np

from envprobe_core.compiled.records import NONE
from envprobe_core.engine.batch import Trajectory
from envprobe_core.environment import Agent, Environment, ProbePolicy, SimulatedAgent, make_environment
from envprobe_core.policies.custom import View
from envprobe_core.worlds.base import Floats


class EnvProbeSimple:
    """The paper's policy: the score of Equation 2, and a gate with a threshold and a budget."""

    def score(self, view: View) -> Floats:
        """The score rho of every field, [field]: criticality, staleness, uncertainty, dependency."""
        return ((view.c + view.s) + view.u) + view.d  # in this order, so that no last bit differs

    def choose(self, view: View) -> int:
        """The field to probe, or NONE while the gate stays shut."""
        rho = self.score(view)  # score all belief fields
        best = int(np.argmax(rho))  # i*, the first of equals
        gate_opens = rho[best] >= view.threshold and view.used < view.budget  # rho* = 1.5, B = floor(H / 4)
        return best if gate_opens else NONE


def play_episode(environment: Environment, agent: Agent, policy: ProbePolicy, seed: int) -> Trajectory:
    """The recording of one episode: a row of what was believed, true and done at each step."""
    observation = environment.reset(seed)  # b_0 = g_0
    while True:
        belief = agent.update(observation)  # b_t
        if observation.last:  # t = H
            return environment.finish(belief)
        action = agent.propose()  # a_t
        view = environment.view(belief, action)
        field = policy.choose(view)
        if field != NONE:  # noqa: SIM108 (each branch is a line of the paper)
            observation = environment.probe(field)  # b_{t+1} := g_t for this field; a_t is put off
        else:
            observation = environment.step(action)  # carry out a_t; the world mutates


__all__ = ["EnvProbeSimple", "SimulatedAgent", "make_environment", "play_episode"]
