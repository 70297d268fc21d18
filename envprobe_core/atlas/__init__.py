"""The robustness atlas: which claims survive when the agent behaves differently.

A space-filling sample of agent profiles runs every policy in every world under every protocol, and each
claim is tested once for each profile: `design` draws the profiles, `questions` chooses the claims, `running`
simulates, `testing` reaches the verdicts of many profiles at once, `sharing` counts them and finds the agents
that match the paper's figures, `deciding` finds the behaviour that matters most.
"""
