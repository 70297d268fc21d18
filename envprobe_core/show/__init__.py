"""What makes a page of results: `table`, `draw` and `conclude`."""
