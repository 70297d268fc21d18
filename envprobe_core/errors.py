"""The one error a user can cause and mend."""


class InputError(ValueError):
    """Input that cannot be used: its message says what, the value given, and what is accepted.

    The command line shows it as one line and ends with exit code 2.
    """
