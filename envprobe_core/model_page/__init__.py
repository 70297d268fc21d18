"""The section on a language model as the agent: one situation, what a grid costs, a replayed run."""
