"""What makes a page of results: `table`, `draw`, `conclude` and what else a notebook shows."""

BOOK = "ENVPROBE_BOOK_VALUES"
"""In a kernel's environment where a notebook runs with the book's own values: what is not true is a fault."""
EXECUTED = "ENVPROBE_EXECUTED"
"""In a kernel's environment where sections are executed for pages: the folder in which they lie."""
