"""Forks of an episode, and what repairs of its beliefs gain there: what `analyses.theory` measures."""
