"""The simulated agent and its profiles (Section 6.1; book/definitions.md)."""
