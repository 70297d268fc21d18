"""The robustness atlas: which claims survive when the agent behaves differently.

A space-filling sample of agent profiles runs every policy in every world under every protocol, and each
claim is tested once for each profile: `design` draws the profiles, `questions` chooses the claims,
`running` simulates, `testing` reaches the verdicts of many profiles at once, `fitting` finds the profiles
that match the paper's calibration targets, `deciding` finds the behaviour that matters most, `tables`,
`drawing` and `text` show it.
"""
