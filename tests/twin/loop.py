"""One episode, as Algorithm 1 has it."""

from . import graphnav, objectstate, tooldag
from .agent import Agent
from .given import NONE, WAIT, Episode, Noise, Profile, Switches
from .policies import SCORES, UNANSWERED, Gates, S, Structure, U
from .voi import WEIGHTS, Public, Voi

WORLDS = {"tooldag": tooldag, "objectstate": objectstate, "graphnav": graphnav}


def run_episode(
    *,
    world: str,
    instance: tooldag.Instance | objectstate.Instance | graphnav.Instance,
    noise: Noise,
    protocol: Switches,
    profile: Profile,
    observation: str,
    rates: list[float],
    policy: str,
    budget: int,
    threshold: float,
    horizon: int,
    schedule: list[int] | None = None,
) -> Episode:
    """Run one episode (the agent's words must reach to step H, the last update)."""
    graph_known = protocol.structure == "graph"
    stops, clock_runs = protocol.end == "success", protocol.clock == "runs"
    answered = protocol.answer == "delivered" and policy not in UNANSWERED

    layout = WORLDS[world].Layout(instance)
    truth = WORLDS[world].World(layout, rates, protocol.sight, observation)
    mind = WORLDS[world].Mind(layout, protocol.sight, graph_known)
    distracted = observation == "distractor"
    agent = Agent(mind, layout.ranges, layout.actions, profile, noise, distracted)

    # the four weighted terms: c and d by proposed action, s and u by the whole number reported
    scored = policy in SCORES
    wc, ws, wu, wd = SCORES.get(policy, (0, 0, 0, 0))
    weights = layout.weights()
    structure = Structure(layout, weights, not graph_known, profile.single_report, wc, wd)
    s, u = [ws * term for term in S], [wu * term for term in U]

    released = protocol.baselines == "released"
    gates = Gates(weights, budget, horizon, threshold, noise.probe, released, schedule)
    prober = None
    if policy in WEIGHTS and answered:
        drops = observation == "partial"
        prober = Voi(Public(layout, graph_known), WEIGHTS[policy], horizon, budget, drops)
    choose = gates.no_probe if policy in WEIGHTS else getattr(gates, policy.replace("-", "_"))

    episode = Episode()
    gold = truth.gold()
    seen = truth.observe(WAIT, noise.visible[0][0])
    agent.observe(0, seen, truth.here, WAIT, None)
    agent.start(dict(enumerate(gold)) if protocol.start == "gold" else seen)

    rho: list[float] = []
    probes_used = t = tick = 0
    done_last, worked, fresh = WAIT, None, True  # what the observation follows, and is it a new one
    told: dict[int, int] = {}
    while True:
        # the agent updates its table, proposes an action and reports
        if t > 0:
            agent.update(t)
        over = t == horizon or (stops and truth.success)
        proposal = agent.propose(t)
        c, d, first_used = structure.terms(proposal, truth.here, agent.value)
        if profile.single_report:
            agent.report_only(first_used)
        agent.publish(not graph_known)

        episode.belief.append(agent.value[:])
        episode.staleness.append(agent.staleness[:])
        episode.confidence.append(agent.confidence[:])
        episode.gold.append(gold)
        episode.here.append(truth.here)
        if over:
            break

        # score all belief fields
        if scored:
            tau_hat, conf_hat = agent.reported_staleness, agent.reported_confidence
            rho = [
                ((c_i + s[tau]) + u[conf]) + d_i
                for c_i, tau, conf, d_i in zip(c, tau_hat, conf_hat, d, strict=True)
            ]

        # the gate: probe a field, or execute the proposed action
        field = choose(t, agent, gold, rho, d, probes_used) if probes_used < budget else NONE
        worth = None
        if prober is not None:
            prober.watch(agent.value, seen, truth.here, done_last, worked, fresh, told)
            field, worth = prober.choose(t, agent.value, truth.here, proposal, probes_used)
            field = field if probes_used < budget else NONE
        action = answer = valid = None
        if field != NONE:
            probes_used += 1
            action = WAIT
            answer = gold[field] if answered else None
        else:
            action = proposal
            valid = None if action == WAIT else truth.act(action)

        # the world mutates, the agent observes; neither during a probe under a still clock
        if field == NONE or clock_runs:
            truth.mutate(noise.mutation[tick])
            tick += 1
            gold = truth.gold()
            seen = truth.observe(action, noise.visible[tick][0])
            agent.observe(t + 1, seen, truth.here, action, valid)
            done_last, worked, fresh = action, valid, True
        else:
            agent.reread()
            fresh = False

        # the step ends: staleness grows, then a delivered answer is learnt
        agent.end_step()
        told = {}
        if answer is not None:
            agent.learn(field, answer)
            told = {field: answer}

        episode.proposal.append(proposal)
        episode.probe.append(field)
        episode.answer.append(answer)
        episode.valid.append(valid)
        episode.score.append(max(rho) if scored else worth)
        t += 1

    episode.steps, episode.success = t, truth.success
    return episode
