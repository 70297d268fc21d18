"""``python -m envprobe_book``: the same as the command ``envprobe``, which is `main`."""

import sys


def main() -> None:
    """Run the command line; without the extra `cli` one line says so, and the exit code is 2."""
    if sys.platform == "win32":
        sys.exit(_fail("Windows is not supported, whose processes know no signals; WSL is Linux"))
    try:  # an interrupt meanwhile would be a traceback
        from envprobe_book.extras import check_extra
        from envprobe_core.errors import InputError

        try:
            check_extra("cli", "the command envprobe")
            from envprobe_book import cli
        except InputError as error:  # also of a module of worlds or policies, which is read at once
            sys.exit(_fail(str(error)))
    except KeyboardInterrupt:
        sys.exit(_fail("interrupted", 130))
    cli.main()


def _fail(message: str, code: int = 2) -> int:
    print(f"envprobe: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
