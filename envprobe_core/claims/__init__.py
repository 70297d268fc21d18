"""The paper's numbers and claims as data, and what becomes of a claim on a frame of episodes.

`records` reads the claims, `printed` the numbers, `places` where they stand; `judge` tests claims.
`data/paper/README.md` explains every column of the files.
"""

from envprobe_core.claims.printed import PAPER_FOLDER, STRATA, PaperValue, paper_value, paper_values
from envprobe_core.claims.records import (
    Claim,
    find_claim,
    load_claims,
    measure_parts,
    parse_claim,
    policy_and_budget,
)

__all__ = [
    "PAPER_FOLDER", "STRATA", "Claim", "PaperValue", "find_claim", "load_claims", "measure_parts",
    "paper_value", "paper_values", "parse_claim", "policy_and_budget",
]  # fmt: skip
