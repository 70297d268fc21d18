"""``python -m envprobe_book``: the same as the command ``envprobe``, which is `main`."""

import sys

from envprobe_book.extras import check_extra
from envprobe_core.errors import InputError


def main() -> None:
    """Run the command line; without the extra `cli` one line says so, and the exit code is 2."""
    if sys.platform == "win32":
        sys.exit(_fail("Windows is not supported, whose processes know no signals; WSL is Linux"))
    try:
        check_extra("cli", "the command envprobe")
    except InputError as error:
        sys.exit(_fail(str(error)))
    from envprobe_book import cli

    cli.main()


def _fail(message: str) -> int:
    print(f"envprobe: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
