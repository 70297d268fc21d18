"""The engine: Algorithm 1 of the paper, one episode at a time, compiled, run in blocks and put into pages."""
