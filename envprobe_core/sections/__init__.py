"""One module a section of the book: what it loads, shows, plots and tells."""
