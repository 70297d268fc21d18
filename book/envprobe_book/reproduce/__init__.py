"""The sections of the paper executed again, and the book built from them, as pages and on paper."""

import sys
import time

STARTED = time.time()
"""When this process began to load what makes results of executed notebooks, in seconds since 1970."""

# as if it were not installed: jsonschema, which checks notebooks, would make 38 grammars of addresses from it
# in each process, in two seconds, and no notebook is checked with any (its issue 1428)
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
