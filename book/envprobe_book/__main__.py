"""``python -m envprobe_core``: the same as the command ``envprobe``."""

from envprobe_book.cli import main

if __name__ == "__main__":
    main()
