"""A run as a folder: what was asked for, a table of episodes, a log of every step, and their check.

`manifest` says what a run is, `tables` how episodes and steps are written, `folder` how they are made and
kept through any kill, `summary` what they come to, `recompute` whether it is true. `reader` is for others.
"""
