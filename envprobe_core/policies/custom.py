"""A reader's own policy: a score function of what one agent sees at one step, compiled where it can be.

The engine calls a rule: a C function of a sight's address that writes the scores and says whether it could.
A compiled rule is the reader's function as machine code, made once a process and function; `Called` calls
Python. Both give the same bits: what does not, on sights of every kind, is not compiled.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba import cfunc, from_dtype, njit, types, vectorize
from numba.core.types import WrapperAddressProtocol
from numba.extending import intrinsic, overload

from envprobe_core.engine.numba_support import INTERPRETED
from envprobe_core.engine.records import CERTAIN, FIELDS, SIGHT, STALENESS_LIMIT, UNKNOWN, new
from envprobe_core.errors import InputError

Score = Callable[[Any], Any]
"""From a view to an array [field] of scores; the field of the highest is probed if that is high enough."""
FINE, FAILED = 0, 1
SIGNATURE = types.int64(from_dtype(SIGHT))
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
SLOW = ("isin",)  # of NumPy: compiles for half a minute, so that Python is asked
SAMPLES = 240  # sights on which a compiled function must give Python's bits
MOST_MADE = 256  # functions that are kept compiled


class View(NamedTuple):
    """What a policy sees when it decides, by the paper's names; arrays, [field], cannot be written to."""

    c: Any  # criticality, 0 to 1
    s: Any  # reported staleness, min(1, steps / 10)
    u: Any  # reported uncertainty, 1 - confidence
    d: Any  # dependency role for the proposed action: 1, .5 or 0
    value: Any  # believed values, -1 where unknown
    staleness: Any  # reported staleness in steps
    confidence: Any  # reported confidence in percent
    step: int  # t, from 0
    horizon: int  # H
    budget: int  # B
    used: int  # probes fired so far
    threshold: float  # rho_star
    action: int  # the proposed task action, by number; -1 waits
    risk: int  # the agent's self-reported risk, 0 or 1
    draw: int  # 63 random bits of this episode and step, the same in every run


def locked(array: Any) -> Any:
    """Return an array that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


def whole(number: Any) -> int:
    """Return a number of any width."""
    return int(number)


@overload(whole)
def _whole(number):
    return lambda number: np.int64(number)


@intrinsic
def _as_locked(context, array):
    return array.copy(readonly=True)(array), lambda context, builder, signature, arguments: arguments[0]


@overload(locked)
def _locked(array):
    return lambda array: _as_locked(array)


def view_of(sight: Any) -> View:
    """Return the view of a sight, compiled as called from Python."""
    n = sight.fields
    return View(
        locked(sight.c[:n]),
        locked(sight.s[:n]),
        locked(sight.u[:n]),
        locked(sight.d[:n]),
        locked(sight.value[:n]),
        locked(sight.staleness[:n]),
        locked(sight.confidence[:n]),
        whole(sight.step),
        whole(sight.horizon),
        whole(sight.budget),
        whole(sight.used),
        float(sight.threshold),
        whole(sight.action),
        whole(sight.risk),
        whole(sight.draw >> np.uint64(1)),
    )


@dataclass(frozen=True)
class Guarded:
    """A score function with a check of what it reads and returns, for when Python calls it.

    Attributes:
        function: the reader's own, which may be compiled in its place.
    """

    function: Score


class Called(WrapperAddressProtocol):
    """A rule that calls Python; after an error, which it keeps, it fails for good.

    Attributes:
        error: what the function raised, or None.
    """

    _numba_type_ = types.FunctionType(SIGNATURE)

    def __init__(self, score: Score) -> None:
        """Make a rule of a score function."""
        self.score = score
        self.error: BaseException | None = None
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._enter)

    def __wrapper_address__(self) -> int:
        return ctypes.cast(self._entry, ctypes.c_void_p).value or 0

    def signature(self) -> Any:
        """Tell Numba what it is called with."""
        return SIGNATURE

    def _enter(self, address: int) -> int:
        memory = (ctypes.c_char * SIGHT.itemsize).from_address(address)
        return self(np.frombuffer(memory, SIGHT).view(np.recarray)[0])

    def __call__(self, sight: Any) -> int:
        """Write the scores of a sight; say whether that went well."""
        if self.error is None:
            try:
                scores = np.asarray(self.score(view_of(sight)), dtype=np.float64)
                if scores.shape != (sight.fields,) or not np.isfinite(scores).all():
                    raise InputError(f"a policy must return {sight.fields} finite scores, one a field")
                sight.rho[: sight.fields] = scores
            except BaseException as error:  # compiled code would not let it pass
                self.error = error
        return FINE if self.error is None else FAILED


def nobody(view: Any) -> Any:
    """Stand in for a reader's policy where there is none: it is never asked."""
    raise LookupError("there is no policy of a reader's")


NOBODY = Called(nobody)


class Made(NamedTuple):
    """What came of compiling a function: a rule, or why there is none: an error, or other bits (None)."""

    rule: Any | None
    why: Exception | None


def rule_of(score: Score | None) -> Any:
    """Return what the engine calls for a score function: compiled if that gives the same bits."""
    if score is None:
        return NOBODY
    rule = None if INTERPRETED else made(score).rule
    return Called(score) if rule is None else rule


_made: dict[Any, tuple[Any, Made]] = {}


def made(score: Score) -> Made:
    """Compile a score function if that can be done, and compare it with what Python does.

    That is done once a process for a function's code and the values that it takes from outside, as they are.
    """
    function = score.function if isinstance(score, Guarded) else score
    if not isinstance(function, FunctionType):
        return Made(None, TypeError())
    names = dict.fromkeys(name for code in codes(function.__code__) for name in code.co_names)
    outside = [function.__globals__.get(name) for name in names]
    outside += [_inside(cell) for cell in function.__closure__ or ()]
    outside += [function.__defaults__, function.__kwdefaults__]
    key = (function.__code__, *map(_frozen, outside))
    if key not in _made:
        if len(_made) >= MOST_MADE:
            del _made[next(iter(_made))]
        _made[key] = outside, _compare(function)  # what is outside is kept, so that ids stay theirs
    return _made[key][1]


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is bound yet
        return None


def _frozen(value: Any) -> Any:
    """Return what can be compared in a value's place; compiled code holds numbers and arrays as they were."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, bool | int | float | complex | str | np.generic | None):
        return type(value), repr(value)
    if isinstance(value, tuple | list):
        return type(value), *map(_frozen, value)
    return type(value), id(value)


def _compare(function: FunctionType) -> Made:
    """Compile a function; keep that if it fails where Python does, and gives Python's bits elsewhere."""
    try:
        rule = compiled(function)
    except Exception as error:  # the compiler's own faults included: Python is asked instead
        return Made(None, error)
    compiled_rule = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(rule.address)
    for sight in samples():
        ours = sight.copy()
        called = Called(function)
        with np.errstate(all="ignore"):
            outcome = called(sight)
        if isinstance(called.error, KeyboardInterrupt):
            raise called.error
        if outcome != compiled_rule(ours.__array_interface__["data"][0]):
            return Made(None, None)
        if outcome == FINE and sight.rho.tobytes() != ours.rho.tobytes():
            return Made(None, None)
    return Made(rule, None)


def samples() -> Any:
    """Return sights of every kind, the same at any time."""
    random = np.random.default_rng(0)
    sights, shape = new(SIGHT, SAMPLES), (SAMPLES, FIELDS)
    weight = random.random(shape) ** 3
    sights.c = weight / weight.max(axis=1, keepdims=True)
    sights.staleness = np.minimum(random.integers(0, 2 ** random.integers(1, 8, shape)), STALENESS_LIMIT)
    sights.confidence = CERTAIN - random.integers(0, 2 ** random.integers(1, 7, shape))
    sights.s, sights.u = np.minimum(sights.staleness, 10) / 10.0, 1.0 - sights.confidence / 100.0
    sights.d = random.choice([0.0, 0.5, 1.0], shape)
    sights.value = random.integers(UNKNOWN, 4, shape)
    sights.fields = random.integers(8, FIELDS, SAMPLES, endpoint=True)
    sights.horizon = random.choice([20, 30, 50], SAMPLES)
    sights.step = random.integers(0, sights.horizon)
    sights.budget = random.integers(1, 12, SAMPLES)
    sights.used = random.integers(0, sights.budget)
    sights.threshold = 1.5
    sights.action = random.integers(-1, sights.fields)
    sights.risk = random.integers(0, 2, SAMPLES)
    sights.draw = random.integers(0, 2**64, SAMPLES, dtype=np.uint64)
    return sights


def compiled(function: FunctionType) -> Any:
    """Compile a score function to a rule.

    A rule that fails leaves NaN in the first score, and fails from then on: the engine asks at the end.

    Raises:
        Exception: of Numba, if it cannot be compiled.
    """
    outside = {name: NUMPY if value is np else value for name, value in function.__globals__.items()}
    copy = FunctionType(
        function.__code__, outside, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    scores_of = njit(boundscheck=True, **INNER)(copy)
    scores_of.compile((VIEW,))
    result = scores_of.overloads[VIEW,]
    kind = result.signature.return_type

    @intrinsic
    def attempt(context, view):
        """Call the function; return whether it raised nothing, and its scores (a `try` compiles slowly)."""
        both = types.Tuple((types.boolean, kind))

        def code(context, builder, signature, arguments):
            context.active_code_library.add_linking_library(result.library)
            callee = context.declare_function(builder.module, result.fndesc)
            status, scores = context.call_conv.call_function(builder, callee, kind, (VIEW,), arguments)
            scores = builder.select(status.is_ok, scores, scores.type(None))
            return context.make_tuple(builder, both, (status.is_ok, scores))

        return both(view), code

    def rule(sight):
        fine, scores = attempt(view(sight))
        if fine and accept(scores, sight):
            return FINE
        sight.rho[0] = np.nan
        return FAILED

    return cfunc(SIGNATURE, no_cpython_wrapper=True)(rule)


@vectorize
def where(condition, x, y):
    """Choose as `np.where` does; Numba's own takes ten times as long to compile."""
    return x if condition else y


NUMPY = ModuleType("numpy")  # as compiled functions have it
vars(NUMPY).update({name: value for name, value in vars(np).items() if name not in SLOW}, where=where)


@njit(**INNER)
def accept(scores, sight):
    """Take scores over; say whether they are finite, one a field, and the rule has not failed before."""
    if len(scores) != sight.fields or (sight.step > 0 and np.isnan(sight.rho[0])):
        return False
    for i in range(sight.fields):
        score = np.float64(scores[i])
        if not np.isfinite(score):
            return False
        sight.rho[i] = score
    return True


view = njit(**INNER)(view_of)
_terms, _reports = (types.Array(kind, 1, "C", readonly=True) for kind in (types.float64, types.int32))
_arrays, _numbers = [_terms] * 4 + [_reports] * 3, [types.int64] * 4 + [types.float64] + [types.int64] * 3
VIEW = types.NamedTuple(_arrays + _numbers, View)
