"""What a cell in sight makes: lines that are a section's equation stay in its notebook, and are tested."""

from types import SimpleNamespace

from envprobe_book.reproduce.sections import cell_source, read_section
from envprobe_core.sources import ROOT


def run_cell(section, name, **given):
    """Run one whole cell of a section, by its id; return the names that it was given or makes."""
    cells = read_section(ROOT / "notebooks" / f"{section}.ipynb").cells
    (source,) = (cell_source(cell) for cell in cells if cell["id"] == name)
    exec(compile(source, f"{section}, cell {name}", "exec"), given)
    return SimpleNamespace(**given)
