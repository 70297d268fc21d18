"""A reader's own policy: a score function of what one agent sees at one step, compiled where it can be.

The engine calls a rule: a C function of a sight's address that writes the scores and says whether it could.
A compiled rule is the reader's function as machine code, made once a process and function; `Called` calls
Python. Both give the same bits: what does not, on sights of every kind, is not compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import cfunc, from_dtype, njit, types, vectorize
from numba.core import cgutils
from numba.core.types import WrapperAddressProtocol
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import populate_array

from envprobe_core.engine.compiling import INTERPRETED
from envprobe_core.engine.records import CERTAIN, FIELDS, SIGHT, STALENESS_LIMIT, UNKNOWN, new
from envprobe_core.errors import InputError

Score = Callable[[Any], Any]
"""From a view to an array [field] of scores; the field of the highest is probed if that is high enough."""
FINE, FAILED = 0, 1
SIGNATURE = types.int64(from_dtype(SIGHT))
SLOW = ("isin",)  # of NumPy: compiles for half a minute, so that Python is asked
SAMPLES = 240  # sights on which a compiled function must give Python's bits


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


ARRAYS, NUMBERS = View._fields[:7], View._fields[7:-1]


def view_of(sight: Any) -> View:
    """Return the view of a sight, for a policy that Python calls."""
    n = sight["fields"]
    arrays = [sight[name][:n].copy() for name in ARRAYS]
    for array in arrays:
        array.flags.writeable = False
    return View(*arrays, *(sight[name].item() for name in NUMBERS), int(sight["draw"]) >> 1)


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
        return self(np.frombuffer(memory, SIGHT)[0])

    def __call__(self, sight: Any) -> int:
        """Write the scores of a sight; say whether that went well."""
        if self.error is None:
            try:
                sight["rho"][: sight["fields"]] = checked(self.score(view_of(sight)), sight)
            except BaseException as error:  # compiled code would not let it pass
                self.error = error
        return FINE if self.error is None else FAILED


def checked(given: Any, sight: Any) -> Any:
    """Return scores as numbers.

    Raises:
        InputError: if they are not one finite number a field.
    """
    scores = np.asarray(given, dtype=np.float64)
    if scores.shape != (sight["fields"],) or not np.isfinite(scores).all():
        raise InputError(f"a policy must return {sight['fields']} finite scores, one a field")
    return scores


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


def made(score: Score) -> Made:
    """Compile a score function if that can be done, once a process, and compare it with what Python does."""
    function = score.function if isinstance(score, Guarded) else score
    return _made(_Known(function)) if isinstance(function, FunctionType) else Made(None, TypeError())


@lru_cache(maxsize=256)
def _made(known: _Known) -> Made:
    try:
        rule = compiled(known.function)
    except Exception as error:  # the compiler's own faults included: Python is asked instead
        return Made(None, error)
    return Made(rule if agrees(known.function, rule) else None, None)


def agrees(function: Score, rule: Any) -> bool:
    """Say whether a compiled rule fails where Python does, and gives Python's bits elsewhere."""
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(rule.address)
    for sight in samples():
        ours = sight.copy()
        called = Called(function)
        with np.errstate(all="ignore"):
            outcome = called(sight)
        if isinstance(called.error, KeyboardInterrupt):
            raise called.error
        if outcome != entry(ours.__array_interface__["data"][0]):
            return False
        if outcome == FINE and sight["rho"].tobytes() != ours["rho"].tobytes():
            return False
    return True


def samples() -> Any:
    """Return sights of every kind, the same at any time."""
    random = np.random.default_rng(0)
    sights, shape = new(SIGHT, SAMPLES), (SAMPLES, FIELDS)
    weight = random.random(shape) ** 3
    sights.c = weight / weight.max(axis=1, keepdims=True)
    sights.staleness = np.minimum(random.integers(0, 2 ** random.integers(1, 8, shape)), STALENESS_LIMIT)
    sights.confidence = CERTAIN - random.integers(0, 2 ** random.integers(1, 7, shape))
    sights.s = np.minimum(sights.staleness, 10) / 10.0
    sights.u = 1.0 - sights.confidence / 100.0
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


class _Known:
    """A function by what it does: its code and the values that it takes from outside, as they are now."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        names = (name for code in codes(function.__code__) for name in code.co_names)
        found = [function.__globals__.get(name) for name in dict.fromkeys(names)]
        found += [_inside(cell) for cell in function.__closure__ or ()]
        self._values = (
            *found,
            function.__defaults__,
            function.__kwdefaults__,
        )  # kept, so that ids stay theirs
        self._key = (function.__code__, _frozen(self._values))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key == other._key


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


def compiled(function: FunctionType) -> Any:
    """Compile a score function to a rule.

    A rule that fails leaves NaN in the first score, and fails from then on: the engine asks at the end.

    Raises:
        Exception: of Numba, if it cannot be compiled.
    """
    scores_of = njit(boundscheck=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(_with_numpy(function))
    scores_of.compile((VIEW,))
    result = scores_of.overloads[VIEW,]
    kind = result.signature.return_type

    @intrinsic
    def attempt(context, sight):
        """Call the function; return whether it raised nothing, and its scores (a `try` compiles slowly)."""
        both = types.Tuple((types.boolean, kind))

        def code(context, builder, signature, arguments):
            context.active_code_library.add_linking_library(result.library)
            callee = context.declare_function(builder.module, result.fndesc)
            status, scores = context.call_conv.call_function(builder, callee, kind, (VIEW,), arguments)
            scores = builder.select(status.is_ok, scores, scores.type(None))
            return context.make_tuple(builder, both, (status.is_ok, scores))

        return both(sight), code

    def rule(sight):
        fine, scores = attempt(sight)
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


def _with_numpy(function: FunctionType) -> FunctionType:
    """Return a function that finds `NUMPY` where it would find NumPy."""
    outside = {name: NUMPY if value is np else value for name, value in function.__globals__.items()}
    copy = FunctionType(
        function.__code__, outside, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
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


# the view as compiled functions have it: the sight itself, its arrays cut to [field] and locked


class _ViewType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="View")


VIEW, _RECORD = _ViewType(), from_dtype(SIGHT)


@register_model(_ViewType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(_RECORD).get_value_type())


@infer_getattr
class _Attributes(AttributeTemplate):
    key = _ViewType

    def generic_resolve(self, view: Any, name: str) -> Any:
        """Return the type of an attribute; None if there is none of that name."""
        if name in ARRAYS:
            return types.Array(_RECORD.typeof(name).dtype, 1, "C", readonly=True)
        if name in View._fields:
            return types.float64 if name == "threshold" else types.int64
        return None


@lower_getattr_generic(_ViewType)
def _get(context: Any, builder: Any, kind: Any, view: Any, name: str) -> Any:
    """Read a number, or lay an array over the sight."""

    def address(part: str) -> Any:
        member = getattr(_RECORD.typeof(part), "dtype", _RECORD.typeof(part))
        return cgutils.get_record_member(builder, view, _RECORD.offset(part), context.get_data_type(member))

    word = ir.IntType(64)
    if name not in ARRAYS:
        number = builder.load(address(name), align=1)
        if name == "draw":
            return builder.lshr(number, word(1))
        return number if name == "threshold" else builder.sext(number, word)
    element = _RECORD.typeof(name).dtype
    array = context.make_array(types.Array(element, 1, "C", readonly=True))(context, builder)
    size = word(element.bitwidth // 8)
    count = builder.sext(builder.load(address("fields"), align=1), word)
    one = cgutils.pack_array(builder, [count]), cgutils.pack_array(builder, [size])
    populate_array(array, address(name), *one, size, meminfo=None)
    return array._getvalue()
