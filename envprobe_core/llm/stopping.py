"""The one error that ends a run on a model: the answers so far are kept and nothing was scored."""


class RunStoppedError(Exception):
    """A run cannot go on; its message is one line that says why and what to do.

    The command line shows it and ends with exit code 1. It never becomes a score.
    """


class MissingAnswerError(RunStoppedError):
    """A replay needs an answer that its store does not hold."""
