"""What makes a page of results: `table`, `draw`, `conclude` and, under sliders, `interact`."""

import os

BOOK = "ENVPROBE_BOOK_VALUES"
"""In a kernel's environment where a notebook runs with the book's own values: what is not true is a fault."""
SERVED = "JPY_SESSION_NAME"
"""There where a Jupyter server started the kernel: widgets are live, and no page is made."""


def in_jupyterlab() -> bool:
    """Tell whether a person works in this kernel, so that widgets are live."""
    return SERVED in os.environ
