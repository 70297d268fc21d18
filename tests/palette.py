"""Whether a drawing keeps to the text's colour: hues belong to policies."""

from envprobe_book.pages.figures import DARK


def hues(drawing):
    """The colours of a drawing that are neither the text's nor grey."""
    body = drawing.svg().partition("</style>")[2]
    return [hue for hue in DARK if f"--ink-{hue[1:]})" in body]
