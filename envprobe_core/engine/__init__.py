"""The engine: Algorithm 1 of the paper, one episode at a time, in plain functions that Numba compiles."""
