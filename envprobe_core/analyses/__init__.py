"""Analyses: what several sections compute from forks, grids and small worlds, as frames."""
