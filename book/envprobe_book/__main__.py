"""``python -m envprobe_book``: the same as the command ``envprobe``, which is `main`."""

import sys

from envprobe_book.extras import check_extra
from envprobe_core.errors import InputError


def main() -> None:
    """Run the command line; without the extra `cli` one line says so, and the exit code is 2."""
    try:
        check_extra("cli", "the command envprobe")
    except InputError as error:
        print(f"envprobe: {error}", file=sys.stderr)
        sys.exit(2)
    from envprobe_book import cli

    cli.main()


if __name__ == "__main__":
    main()
