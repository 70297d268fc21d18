"""What compiled functions stand on: how Numba makes and keeps them, their records, their random draws.

Numba looks for SciPy's linear algebra as it starts, a tenth of a second for what no function here uses: it is
told that there is none.
"""

import sys

if "scipy.linalg" not in sys.modules:
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    import numba.np.arraymath  # noqa: F401

    del sys.modules["scipy.linalg"]
