"""The engine: Algorithm 1 of the paper, one episode at a time, in plain functions that Numba compiles.

Numba looks for SciPy's linear algebra as it starts, a tenth of a second for what no function here uses: it is
told that there is none.
"""

import sys

if "scipy.linalg" not in sys.modules:
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    import numba.np.arraymath  # noqa: F401

    del sys.modules["scipy.linalg"]
