"""The paper's theory, checked: the mathematics by itself, and its quantities measured on the engine."""
