"""Parameters are checked at every door: papermill and a Jupyter kernel as under `envprobe reproduce`."""

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from envprobe_book.reproduce.declared import check_history
from envprobe_core.errors import InputError
from envprobe_core.sources import ROOT

DECLARED = 'n: int = 3  # how many; accepts 1..10\nseeds: str = "0:9"  # whose; accepts seeds'
BAD = {
    ("theory", "moment", 5): "parameter moment of this notebook: 5 given; accepted: a number, 0..0.9",
    ("theory", "moments", 0.5): "unknown parameter 'moments' of this notebook; accepted: seeds, regime, ",
    ("optimal-bound", "steps", 14): "parameter steps of this notebook: 14 given; accepted: a whole number",
    ("main-results", "resamples", 10**9): "parameter resamples of this notebook: 1000000000 given; ",
    ("main-results", "seeds", 614): "parameter seeds of this notebook: 614 given; accepted: text, seeds",
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_papermill_is_refused_what_no_section_accepts(tmp_path, bad):
    """By one error, in the first cell of code; nothing below it runs, and it shows no result."""
    section, name, value = bad
    out = tmp_path / "out.ipynb"
    with pytest.raises(PapermillExecutionError) as raised:
        papermill.execute_notebook(
            ROOT / "notebooks" / f"{section}.ipynb", out, {name: value}, cwd=ROOT / "notebooks",
            kernel_name="python3", progress_bar=False,
        )  # fmt: skip
    assert (raised.value.ename, raised.value.evalue[: len(BAD[bad])]) == ("InputError", BAD[bad])
    cells = [cell for cell in nbformat.read(out, as_version=4).cells if cell.cell_type == "code"]
    outputs = [one for cell in cells for one in cell.outputs]
    assert [one.output_type for one in outputs] == ["error"]
    assert sum(cell.execution_count is not None for cell in cells) == 3, "declared, injected, refused"


def test_a_kernel_checks_again_what_is_edited_and_lets_it_be_mended():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT / "notebooks"))
    try:

        def told(code):
            answer = client.execute_interactive(
                code, store_history=True, output_hook=lambda _: None, timeout=120
            )
            return answer["content"].get("evalue", "")

        assert told(DECLARED) == ""
        assert told("import envprobe_book") == ""
        assert told("n = [3]  # a name of one's own, later on") == ""
        assert told("n") == ""
        assert told(DECLARED.replace("3", "30")) == ""
        for _ in range(2):
            assert "parameter n of this notebook: '30' given; accepted: a whole number, 1..10" in told("n")
        assert told(DECLARED.replace("3", "4")) == ""
        assert told("assert n == 4") == ""
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("injected", "values", "message"),
    [
        ("n = 4", {"n": 4, "seeds": "0:9"}, ""),
        ("n = True", {"n": True}, "True given; accepted: a whole number"),
        ("n = 4.0", {"n": 4.0}, "4.0 given"),
        ("n = 11", {"n": 11}, "11 given; accepted: a whole number, 1..10"),
        ("seeds = 7", {"seeds": 7}, "7 given; accepted: text, seeds"),
        ("seeds = '9:1'", {"seeds": "9:1"}, "parameter seeds of this notebook: "),
        ("m = 4", {"m": 4}, "unknown parameter 'm' of this notebook; accepted: n, seeds"),
    ],
)
def test_what_is_set_below_a_declaration_is_held_to_it(injected, values, message):
    cells = ["", "n = 99", DECLARED, f"# Parameters\n{injected}"]
    if not message:
        check_history(cells, values)
        return
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        check_history(cells, values)


def test_what_declares_nothing_is_left_alone():
    check_history(["n: int = 99", "# Parameters\nm = 4"], {"n": 99, "m": 4})
