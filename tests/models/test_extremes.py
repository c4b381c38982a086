"""Every public function of the models, called with values that nobody has, and with what is none.

A call ends in a figure that makes sense (no nan, no negative time, no share above one, Little's law
where it can be asked), in `inf`, or in a ValueError or ArithmeticError that names an argument; in
nothing else, and without a warning. A function is tested by being there: its arguments are drawn
by their names, numbers by the ranges of the nomenclature.

Some 2,000 calls are made here. NUMMODEL_CALLS=20000 NUMMODEL_SEED=... make an attack of it, with
large counts as well; it also fails a call of more than LIMIT seconds of processor time, which does
not count what else a machine has to do, and prints how long the slowest call took.
"""

import os
import re
import warnings
from inspect import Parameter, isfunction, signature
from zlib import crc32

import numpy as np
import pytest
import scipy.optimize.elementwise
import scipy.signal
import scipy.special
import sympy
from limited import limited
from quick import slow

from nummodel.arguments import WHOLE
from nummodel.formula import Formula
from nummodel.models import (
    locks,
    networks,
    nodes,
    numa,
    operational,
    partition,
    queueing,
    scaling,
    storage,
)
from nummodel.nomenclature import known, quantity

#: What models import where they need it: no part of a call's time.
IMPORTED = (scipy.optimize.elementwise, scipy.signal, scipy.special, sympy)
ATTACK = "NUMMODEL_CALLS" in os.environ
CALLS = int(os.environ.get("NUMMODEL_CALLS", 2000))
SEED = int(os.environ.get("NUMMODEL_SEED", 2026))
LIMIT = 2.0
ROOMS = (queueing, networks, locks, numa, storage, partition, nodes, scaling, operational)
#: Takes expressions, as a part of formulas.
ALGEBRA = ("queueing.while_stable",)


def _public():
    found = {}
    for room in ROOMS:
        for name, f in vars(room).items():
            here = isfunction(f) and f.__module__.startswith("nummodel.models.")
            if not name.startswith("_") and (here or isinstance(f, Formula)):
                found.setdefault(id(f), (f"{room.__name__.rpartition('.')[2]}.{name}", f))
    return dict(found.values())


FUNCTIONS = {name: f for name, f in _public().items() if name not in ALGEBRA}

# --- what is drawn ----------------------------------------------------------------------------

#: Of no use as most arguments.
NONSENSE = [
    np.nan, np.inf, -np.inf, -1.0, -1e300, 1e300, 10**400, 2.5, "many", "5", b"5", None, [], {},
    object(), 1j, [1.0, [2.0]], [[1.0], [1.0, 2.0]], np.array(["a"]), [None], [1.0, np.nan],
    [1.0, None], np.ones((2, 3)), np.ones(5), np.full(3, -1.0), np.array([np.inf, 1.0]), repr,
    lambda n: n, (), ((),), np.float64("nan"), -1, 10**15, 10**9, 1e-320, -0.0, True,
]  # fmt: skip


class Dice(np.random.Generator):
    """Draws what machines have, or what floats hardly hold."""

    wild = False


def number(rng, name):
    """A legal value of a quantity; a wild one is mostly an end of its range."""
    low, high = quantity(name)[3:]
    if name in WHOLE:
        some = [low, 2, 3, 7, 40]
        some += [10**9, 10**8] * rng.wild + [1000, int(10 ** rng.uniform(0, 9))] * ATTACK
        return int(max(rng.choice(some), low))
    if high < np.inf:
        ends = [low, high, np.nextafter(high, low), 1e-300, 1e-17] * rng.wild
        return float(rng.choice([*ends, rng.uniform(low, high)]))
    usual = [1.0, *(10 ** rng.uniform(-3, 3, 3))]
    rare = [low, 1e-300, 1e-100, 1e100, 5e-324, *(10 ** rng.uniform([-300, -20], [100, 20]))]
    return max(float(rng.choice(rare if rng.wild else usual)), low)


def numbers(rng, name):
    """A legal value, or an array of them."""
    shape = [(), (), (), (), (3,), (2, 1), (1,), (0,)][rng.integers(8)]
    if shape == ():
        return number(rng, name)
    return np.array([number(rng, name) for _ in range(np.prod(shape))]).reshape(shape)


def time(rng):
    return min(number(rng, "D"), 1e100)


def station(rng, classes):
    D = [time(rng) for _ in range(classes)] if classes else time(rng)
    kind = rng.integers(2 if classes else 4)
    if kind == 0:
        return networks.delay(D)
    if kind == 1:
        return networks.queue(D)
    if kind == 2:
        return networks.queue(D, servers=int(rng.choice([2, 5, 64, 10**4])))
    return networks.load_dependent(D, capacity(rng, {}))


def stations(rng, _):
    classes, how_many = int(rng.choice([0, 0, 2, 3])), rng.integers(1, 6)
    return [station(rng, classes) for _ in range(how_many)]


def capacity(rng, _):
    length = int(rng.choice([1, 2, 10, 1000, 10**5] if ATTACK else [1, 2, 10, 100]))
    kinds = [
        10 ** rng.uniform(-2, 2, length),
        10 ** rng.uniform(-100, 100, length),
        1 / (1 + rng.uniform(0, 0.1) * np.arange(length)),
        1.0 + np.arange(length),
    ]
    return kinds[rng.integers(4)]


def by_class(name):
    """One figure for each class of the stations, if there are several, or else one or some."""

    def drawn(rng, others):
        some = others.get("stations", [networks.delay(1.0)])
        classes = np.size(some[0].D) if np.ndim(some[0].D) else 0
        if classes and rng.random() < 0.9:
            return tuple(number(rng, name) for _ in range(classes))
        return number(rng, name) if name == "Z" else numbers(rng, name)

    return drawn


def grant(rng, _):
    S, w = time(rng), float(rng.random())
    grants = [
        lambda n: S,
        lambda n: 1.0,
        lambda n: 1e-6 * n,
        lambda n: locks.shared_grant(n, 1.0, w),
        lambda n: locks.tas_grant(n, 1.0, 0.1, 0.3, 4, 0.05),
        lambda n: np.array([S, 1.0]),
    ]
    grants += rng.wild * [
        lambda n: 1e-320,
        lambda n: np.nan,
        lambda n: -1.0,
        lambda n: 1e300,
        lambda n: None,
        lambda n: "long",
    ]
    return grants[rng.integers(len(grants))]


def by_lock(rng, _):
    names = ["queue", *rng.choice(["ticket", "tas", "ttas", "backoff", "cohort"], rng.integers(4))]
    one = {str(name): time(rng) for name in names}
    return [one, {1: one, 2: {"queue": (time(rng), time(rng))}}][rng.integers(2)]


def table(*values):
    """Of two nodes and two items, mostly."""

    def drawn(rng, _):
        usual, shape = values[:3], (2, 2) if rng.random() < 0.8 else rng.integers(1, 4, 2)
        return rng.choice(values if rng.wild else usual, tuple(shape))

    return drawn


#: Arguments that are no quantities, or not one number: by name, or by function and name.
DRAWN = {
    "stations": stations,
    "grant": grant,
    "capacity": capacity,
    "access": table(0.0, 1.0, 0.5, 1e300, 1e-300, 5e-324),
    "copies": table(0.5, 1.0, 1.0, 0.0, 1e-300),
    "over": lambda rng, _: [None, [0], [0, 1], [5], [0, 0], [10**9]][rng.integers(6)],
    "servers": lambda rng, _: number(rng, "c"),
    "law": lambda rng, _: list(scaling.LAWS.values())[rng.integers(4)],
    "networks.N": by_class("N"),
    "networks.Z": by_class("Z"),
    "networks.D": lambda rng, _: [number(rng, "D"), [time(rng)] * 3][rng.integers(2)],
    "latency": table(1.0, 2.0, 3.0, 0.0, 1e300, 1e-300),
    "numa.memories.channels": lambda rng, _: int(rng.choice([1, 2, 6, 0])),
    "numa.nodes": lambda rng, _: number(rng, "nodes"),
    "storage.m": lambda rng, _: number(rng, "m"),
    "nodes.X": by_lock,
    "nodes.h": lambda rng, _: number(rng, "h") * (1 if rng.wild else 1e-5),
    "nodes.h_remote": lambda rng, _: number(rng, "h") * (1 if rng.wild else 1e2),
    "nodes.N": lambda rng, _: number(rng, "N"),
    "nodes.nodes": lambda rng, _: number(rng, "nodes"),
}  # fmt: skip


def draw(rng, function, parameter, drawn):
    """A value for an argument, beside those that are drawn."""
    room = function.partition(".")[0]
    for key in (f"{function}.{parameter.name}", f"{room}.{parameter.name}", parameter.name):
        if key in DRAWN:
            return DRAWN[key](rng, drawn)
    name = known(parameter.name)
    assert name, f"{function}: say in DRAWN what {parameter.name} is"
    return numbers(rng, name)


def arguments(rng, function):
    drawn, rng.wild = {}, rng.random() < 0.5
    nonsense = rng.random() < 0.4
    for parameter in signature(FUNCTIONS[function]).parameters.values():
        if parameter.default is Parameter.empty or rng.random() > 0.25:
            drawn[parameter.name] = draw(rng, function, parameter, drawn)
    for name in list(drawn):
        if nonsense and rng.random() < 1 / len(drawn):
            drawn[name] = NONSENSE[rng.integers(len(NONSENSE))]
    return drawn


# --- what is asked ----------------------------------------------------------------------------

#: Results that are shares, by the end of a function's name.
SHARES = ("erlang_b", "erlang_c", "_blocking")


def near(left, right):
    return (np.abs(left - right) <= 1e-6 * np.abs(right) + 1e-280).all()


def sound(function, given, result):
    """Why a result is none, or nothing."""
    if isinstance(result, (networks.Station, Formula, bool, list, type(None))):
        return ""
    if callable(result):  # shards
        N = given["N"]
        return sound("a grant", {}, [result(1), result(N)]) or (
            "" if refused(lambda: result(0)) and refused(lambda: result(N + 1)) else "any n"
        )
    if isinstance(result, networks.Solution):
        parts = {n: getattr(result, n) for n in ("X", "R", "R_k", "Q", "rho")}
        empty = np.broadcast_to(np.asarray(parts["X"]) == 0, np.shape(parts["Q"])[1:])
        for n in ("R", "R_k"):  # with nobody there
            parts[n] = np.where(empty, 0.0, parts[n])
        if np.ndim(given["stations"][0].D) == 0:
            N, X, R = np.asarray(given["N"]), np.asarray(parts["X"]), np.asarray(parts["R"])
            if not near((X * (R + given.get("Z", 0.0)))[N > 0], N[N > 0]):
                return "Little's law"
    elif isinstance(result, (locks.Contended, numa.Mix)):
        parts = result._asdict()
    elif isinstance(result, dict):  # outlook's ratios
        parts = {
            f"{n}.{end}": v for n, ratio in result.items() for end, v in ratio._asdict().items()
        }
    elif isinstance(result, tuple):
        parts = {str(i): part for i, part in enumerate(result)}
    else:
        f = FUNCTIONS.get(function)
        parts = {f.result if isinstance(f, Formula) else function: result}
    for name, part in parts.items():
        values = np.asarray(part, dtype=float)
        if np.isnan(values).any():
            return f"{name} is nan"
        if (values < -1e-9).any():
            return f"{name} is negative"
        share = name in ("share", "f_remote", "by_node", "served", "spin", "rho")
        if (share or name.endswith(SHARES)) and (values > 1 + 1e-9).any():
            return f"{name} is above 1"
    return ""


def refused(call):
    try:
        call()
    except ValueError:
        return True
    return False


def attempt(function, given):
    """Why a call is no good, or nothing."""
    try:
        with warnings.catch_warnings(action="error"):
            result = FUNCTIONS[function](**given)
    except (ValueError, ArithmeticError) as wrong:
        if type(wrong) not in (ValueError, ArithmeticError):
            return f"{type(wrong).__name__}: {wrong}"
        names = "|".join(map(re.escape, given))
        return (
            "" if re.search(rf"(?<!\w)({names})\b", str(wrong)) else f"names no argument: {wrong}"
        )
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return sound(function, given, result)


@pytest.mark.parametrize(
    "function", [slow(name) if name == "nodes.outlook" else name for name in FUNCTIONS]
)
def test_a_figure_or_a_named_error(function):
    rng = Dice(np.random.PCG64([SEED, crc32(function.encode())]))
    wrong, slowest = [], 0.0
    for _ in range(-(-CALLS // len(FUNCTIONS))):
        given = arguments(rng, function)

        def call(given=given):
            return attempt(function, given)

        why, seconds = limited(call, LIMIT) if ATTACK else (call(), 0.0)
        if why is None:
            why = f"more than {LIMIT} s"
        slowest = max(slowest, seconds)
        if why:
            wrong.append(f"{function}({given}): {why}")
    if ATTACK:
        print(f"slowest call: {slowest:.3f} s")
    assert not wrong, f"{len(wrong)} calls, such as\n" + "\n".join(wrong[:5])


def test_the_functions_are_found():
    assert len(FUNCTIONS) > 60
    assert {"locks.solve", "queueing.mm1_waiting", "operational.demand"} <= set(FUNCTIONS)


def test_what_would_be_wrong_is_noticed(monkeypatch):
    """A function that gives nan, a negative time, a share above 1, warns, or fails otherwise."""
    kinds = {
        "is nan": lambda S: np.nan,
        "is negative": lambda S: -1.0,
        "above 1": lambda S: 2.0,
        "RuntimeWarning": lambda S: np.float64(1) / np.float64(0),
        "ZeroDivisionError": lambda S: 1 / 0,
        "TypeError": lambda S: len(S),
        "names no argument": lambda S: float("x"),
    }
    for why, f in kinds.items():
        monkeypatch.setitem(FUNCTIONS, "x_blocking", f)
        assert why in attempt("x_blocking", {"S": 1.0})
