"""Fits: the quantities of a formula, or of several laws together, estimated from measurements."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.arguments import FULLEST, LARGEST, WEIGHTS, numbers, within
from nummodel.errors import InputError
from nummodel.fits._estimates import Fit
from nummodel.fits._squares import Column, Problem, percent, rounding, solve, starts
from nummodel.formula import Formula
from nummodel.functions import Bounds, Function, law_of

if TYPE_CHECKING:
    import pandas as pd

#: How often the errors of several columns are estimated again, at most.
ROUNDS = 10
#: Steps of each first search, and minima at most that are searched for to all digits.
ROUGHLY, MINIMA = 12, 6
#: The relative error of measurements, from which the search for these errors begins.
USUAL = 0.05


def fit(
    model: Formula | Callable | Mapping[str, Formula],
    data: Mapping[str, Any],
    weights: Any = "absolute",
    resolution: Any = 0.0,
    times: Any = 1.0,
    start: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
    **known: float,
) -> Fit:
    """Estimate the quantities of `model` that are neither columns of `data` nor `known`.

    `data` maps quantity names to columns: the load (the law's first quantity), the law's result,
    and any other quantity of the law that was measured. The search begins at the points of a coarse
    mesh; if `start` has a first value for every estimate, the search begins only there. `weights`
    say how the error of a measurement depends on its size:

    - "absolute": the same everywhere, as in every published USL fit;
    - "relative": the same percentage everywhere, and the curve is the mean of the measurements;
    - "log": the same percentage everywhere, by residuals of ln X, and the curve is their median;
    - "auto": "absolute" or "log", whichever makes the measurements more likely; the `weights` of
      the fit say which, and its `lead` by how much;
    - an array: the factor of each squared residual.

    `times` is how often each measurement counts, such as the number of runs whose mean it is.
    `resolution` is the half-width of the rounding of X, a number or an array: errors are taken to
    be at least as large as rounding makes them.

    `model` may also map results to laws that share quantities, as those of `systems.closed`: then
    each column of `data` that is the result of a law is fitted, all together. Each column has
    errors of its own, in percent, which the fit finds; `resolution` maps columns to half-widths,
    and a response time or a utilisation of 0 was rounded and is left out.

    Loads are positive, and so is at least one result. A function is given its loads as floats.

    Raises InputError if there are fewer different loads than quantities to estimate, or if the best
    estimates give a result that cannot be; and ValueError for any other argument that makes no
    sense.

    >>> from nummodel.models import systems
    >>> data = {"N": [1, 10, 40], "X": [1.0, 9.6, 19.9], "R": [0.10, 0.14, 1.11]}
    >>> fit(systems.closed(disk=1, cpu=8), data, Z=0.9).curve([80]).value.round().tolist()
    [20.0]
    """
    if isinstance(model, Mapping):
        return _together(model, data, resolution or {}, start, known)
    law = law_of(model, data, known, bounds)
    if isinstance(weights, str) and weights == "auto":
        rest = {"resolution": resolution, "times": times, "start": start, **known}
        absolute = fit(law, data, "absolute", **rest)
        if not (absolute.X > 0).all():
            return absolute
        log = fit(law, data, "log", **rest)
        lead = _restricted(log) - _restricted(absolute)
        return replace(log if lead > 0 else absolute, lead=abs(lead))
    kind = weights if isinstance(weights, str) else "given"
    column, known = _column(law, data, known, kind)
    count = len(column.X)
    several = {"times": times, "resolution": resolution}
    several |= {"weights": weights} if kind == "given" else {}
    several = {n: _as_many(n, numbers(n, v), count, law) for n, v in several.items()}
    w = np.ones(count) * several["times"] * several.get("weights", 1.0)
    half = np.zeros(count) + several["resolution"]
    for good, what in (
        (((w > 0) & (w < np.inf)).all(), "weights and times must be finite and positive"),
        (((half >= 0) & (half < np.inf)).all(), "resolution must be finite and not negative"),
    ):
        if not good:
            raise ValueError(f"fit: {what}")
    problem = _problem((column._replace(w=w, half=half),), kind, known)
    return _finished(problem, _roughly(problem, _first(problem, start)))


def _as_many(name: str, values: np.ndarray, count: int, law: Formula, alone: bool = True) -> Any:
    """Values that are as many as the loads, or a number. Raises ValueError."""
    if values.shape != (count,) and (values.ndim or not alone):
        load = law.quantities[0]
        raise ValueError(f"fit: {values.size} {name} and {count} {load}, expected as many")
    return values


def _column(
    law: Formula, data: Mapping[str, Any], known: Mapping[str, Any], kind: str
) -> tuple[Column, dict[str, float]]:
    """The columns of `data` that a law takes, checked, and what is known as a number."""
    load, result = law.quantities[0], law.result
    if absent := [q for q in (load, result) if q not in data]:
        expected = f"expected {load} and {result}: rename them; the load comes first"
        raise ValueError(f"fit: no column {absent[0]} among {', '.join(data)}, {expected}")
    columns = {n: numbers(n, data[n]) for n in (*law.quantities, result) if n in data}
    if strange := [*{*known} - {*law.quantities[1:]}]:
        expected = f"expected one of: {', '.join(law.quantities[1:])}"
        raise ValueError(f"fit: {law.__name__} has no {strange[0]!r}, {expected}")
    if twice := [*{*known} & {*columns}]:
        raise ValueError(f"fit: {twice[0]} is a column and known, expected one of the two")
    count = columns[load].size
    if not columns[load].ndim:
        raise ValueError(f"fit: {load} is a number, expected a column of several")
    for n, values in columns.items():
        _as_many(n, values, count, law, alone=False)
    X, N = columns.pop(result), columns.pop(load)
    several = {n: _as_many(n, numbers(n, v), count, law) for n, v in known.items()}
    _measurements(law, N, X, kind)
    rest = {
        n: within(n, known.get(n, v), *law.range_of(n), empty=True)
        for n, v in {**columns, **several}.items()
    }
    alone = {n: float(rest.pop(n)) for n in several if not rest[n].ndim}
    return Column(law, {load: N, **rest}, X, np.ones(count), np.zeros(count)), alone


def _measurements(law: Formula, N: np.ndarray, X: np.ndarray, kind: str) -> None:
    """Raises ValueError for loads, results or weights that make no sense."""
    load, result = law.quantities[0], law.result
    if kind not in (*WEIGHTS, "given"):
        raise ValueError(f"weights {kind!r}, expected one of {', '.join(WEIGHTS)}, or an array")
    sizes = np.abs(np.append(N, X[X != 0]))
    for good, what in (
        ((N > 0).all(), f"{load} must be positive"),
        (not percent(kind) or (X > 0).all(), f"{kind} weights need positive {result}"),
        ((X > 0).any(), f"no {result} is positive, expected throughputs"),
        (np.isfinite([N, X]).all(), f"{load} and {result} must be finite"),
        (
            ((sizes > 1 / LARGEST) & (sizes < LARGEST)).all(),
            f"{load} and {result} are too far from 1",
        ),
    ):
        if not good:
            raise ValueError(f"fit: {what}")


def _together(
    laws: Mapping[str, Formula],
    data: Mapping[str, Any],
    halves: Mapping[str, float],
    start: Mapping[str, float] | None,
    known: Mapping[str, float],
) -> Fit:
    """The fit of several columns, each with errors of its own."""
    columns, every = _measured(laws, data, halves, known)

    def weighed(found: np.ndarray) -> tuple[Column, ...]:
        """The columns, weighed by their relative errors."""
        return tuple(
            c._replace(w=1 / (e**2 + (c.half / c.X) ** 2 / 3), error=e**2)
            for c, e in zip(columns, found, strict=True)
        )

    rounded = any(c.half.any() for c in columns)
    rough = weighed(np.full(len(columns), USUAL if rounded else 1.0))
    problem = _problem(rough, "log", every)
    p = _roughly(problem, _first(problem, start))
    if len(columns) == 1 or len(problem.X) <= len(problem.free):
        return _finished(problem, p)
    best = p[:, :1]
    for _ in range(ROUNDS):
        before, found = problem.w, _errors_of(_fit_at(problem, best[:, 0]))
        problem = problem._replace(columns=weighed(found))
        best = solve(problem, best, tolerance=1e-5)[0]
        ratio = problem.w / before
        if np.allclose(ratio, ratio[0], rtol=0.02):
            break
    return _finished(problem, np.hstack([best, p]))


def _measured(
    laws: Mapping[str, Formula],
    data: Mapping[str, Any],
    halves: Mapping[str, float],
    known: Mapping[str, float],
) -> tuple[list[Column], dict[str, float]]:
    """The columns that are results of laws, checked, and what is known as a number."""
    columns: list[Column] = []
    every: dict[str, float] = {}
    for n, law in laws.items():
        if n not in data:
            continue
        own = {q: np.asarray(data[q]) for q in (*law.quantities, n) if q in data}
        seen = own[n] != 0
        if n.startswith("U_") and np.nanmax(own[n], initial=0.0) > FULLEST:
            most = f"{n} is up to {np.nanmax(own[n]):g}"
            raise ValueError(f"{most}, expected a share of all servers, at most 1")
        if n != "X" and seen.any():
            own = {q: _where(seen, v) for q, v in own.items()}
        if not (own[n] > 0).all():
            raise ValueError(f"{n} must be positive: errors are in percent of it")
        mine = {q: v for q, v in known.items() if q in law.quantities[1:]}
        column, alone = _column(law, own, mine, "log")
        every |= alone
        columns.append(column._replace(half=np.full(len(column.X), halves.get(n, 0.0))))
    if not columns:
        raise ValueError(f"no column of {', '.join(data)} is one of {', '.join(laws)}")
    if strange := [*set(known) - set(every)]:
        expected = "expected one of a law's quantities"
        raise ValueError(f"fit: no law has {strange[0]!r} as a number, {expected}")
    return columns, every


def _where(seen: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values that were seen, of as many."""
    return values[seen] if values.shape == seen.shape else values


def _errors_of(fit: Fit) -> np.ndarray:
    """The relative error of each column beside that of rounding, by its own residuals: their
    squares, in units of both errors, add up to how many are free, which is how many there are less
    their leverages. An error is taken to be at least a tenth of the largest, as a column of few
    points may be met by chance, and at least that of floats.
    """
    leverage = np.sum(np.linalg.qr(fit.slopes)[0] ** 2, axis=1)
    found = []
    for j, c in enumerate(fit.columns):
        squares = np.log(c.X / fit.all_curves[fit.part == j]) ** 2
        free = max(len(c.X) - leverage[fit.part == j].sum(), 0.5)
        own, least = (c.half / c.X) ** 2 / 3, np.sum(rounding("log", c.X) ** 2)
        error = _beside_rounding(squares, own, free) if own.any() else np.sqrt(squares.sum() / free)
        found.append(max(error, np.sqrt(least)))
    return np.maximum(found, max(found) / 10)


def _beside_rounding(squares: np.ndarray, own: np.ndarray, free: float) -> float:
    """The error that squares of errors have beside their rounding; 0 if that explains them."""
    from scipy.optimize import brentq

    def more(variance: float) -> float:
        return float(np.sum(squares / (variance + own)) - free)

    most = float(squares.sum() / free) * (1 + 1e-9)  # beyond rounding of floats
    return np.sqrt(brentq(more, 0.0, most)) if more(0.0) > 0 else 0.0


def _problem(columns: tuple[Column, ...], kind: str, known: dict[str, float]) -> Problem:
    """Checked columns, and what is to be estimated. Raises as `fit` does."""
    given = {n for c in columns for n in c.given} | set(known)
    names = dict.fromkeys(n for c in columns for n in c.law.quantities[1:])
    free = tuple(n for n in names if n not in given)
    if not free:
        every = ", ".join(columns[0].law.quantities)
        raise ValueError(f"fit: nothing to estimate, all of {every} are known")
    different = sum(len(np.unique(c.setting)) for c in columns)
    if different < len(free):
        raise InputError(
            f"{different} different {', '.join(columns[0].given)}, "
            f"expected at least {len(free)} to estimate {', '.join(free)}"
        )
    return Problem(columns, kind, free, known)


def _first(problem: Problem, start: Mapping[str, float] | None) -> np.ndarray:
    """Where searches begin, a column each. Raises ValueError for a `start` that makes no sense."""
    if start is None:
        return starts(problem)
    if set(start) != set(problem.free):
        expected = f"expected {', '.join(problem.free)}"
        raise ValueError(f"fit: start has {', '.join(start)}, {expected}")
    for (low, high), name in zip(problem.ends.T, problem.free, strict=True):
        within(name, start[name], low, high)
    return np.array([[start[n]] for n in problem.free], dtype=float)


def _roughly(problem: Problem, first: np.ndarray) -> np.ndarray:
    """Different minima that searches lead to, the lowest first, to few digits. Raises ValueError
    without any.
    """
    p, rss = solve(problem, first, tolerance=1e-3, steps=ROUGHLY)
    if not np.isfinite(rss).any():
        result = problem.columns[0].law.result if len(problem.columns) == 1 else "results"
        raise ValueError(f"no allowed values of {', '.join(problem.free)} give finite {result}")
    law = problem.columns[0].law
    most = 1 if isinstance(law, Function) and law.slow else MINIMA
    return _apart(p, rss, 0.03)[0][:, :most]


def _apart(p: np.ndarray, rss: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of minima, the lowest first: those that differ in an estimate by more than
    this share.
    """
    order = np.argsort(rss)[: np.isfinite(rss).sum()]
    kept: list[int] = []
    for i in order:
        size = share * (abs(p[:, [i]]) + abs(p[:, kept])) / 2 + 1e-300
        if not (abs(p[:, [i]] - p[:, kept]) <= size).all(axis=0).any():
            kept.append(i)
    return p[:, kept], rss[kept]


def _finished(problem: Problem, p: np.ndarray) -> Fit:
    """The fit at the lowest minimum that is near one of `p`. Raises as `fit` does."""
    p, rss = _apart(*solve(problem, p, tolerance=1e-5), 1e-3)
    p[:, :2], rss[:2] = solve(problem, p[:, :2])  # of which either may be the lowest
    p, rss = p[:, np.argsort(rss)], np.sort(rss)
    p[:, 0], rss[0] = _on_bounds(problem, p[:, 0], rss[0])
    size, least = _rounding(problem, p[:, 0], rss[0])
    other = (((p - p[:, :1]) * size[:, None]) ** 2 > 1e4 * least).any(axis=0)
    named = [dict(zip(problem.free, one.tolist(), strict=True)) for one in p[:, other].T]
    others = tuple(zip(rss[other].tolist(), named, strict=True))
    result = replace(_fit_at(problem, p[:, 0]), others=others)
    try:
        for c in problem.columns:
            every = {**result.values, **c.given}
            c.law(**{n: every[n] for n in c.law.quantities})
    except ArithmeticError as impossible:
        raise InputError(str(impossible)) from None
    return result


def _fit_at(problem: Problem, p: np.ndarray) -> Fit:
    return Fit(problem, dict(zip(problem.free, p.tolist(), strict=True)))


def _rounding(problem: Problem, p: np.ndarray, rss: float) -> tuple[np.ndarray, float]:
    """How much the errors grow with each estimate, and the sum of squares that rounding leaves."""
    X, w = problem.X, problem.w
    size = np.linalg.norm(problem.weighted(p[:, None], X, w)[1][..., 0], axis=1)
    return size, rss * 1e-12 + float(np.sum(w * rounding(problem.kind, X) ** 2))


def _on_bounds(problem: Problem, p: np.ndarray, rss: float) -> tuple[np.ndarray, float]:
    """The estimates, and their sum of squares: what differs from a bound by rounding alone is on
    that bound.
    """
    size, least = _rounding(problem, p, rss)
    laws = {n: c.law for c in problem.columns for n in c.law.quantities}
    for i, name in enumerate(problem.free):
        for bound in problem.ends[:, i]:
            near = np.isfinite(bound) and ((bound - p[i]) * size[i]) ** 2 <= 1e4 * least
            if not near or p[i] == bound or laws[name].is_scale(name):
                continue
            others = tuple(n for n in problem.free if n != name)
            held = problem._replace(free=others, known={**problem.known, name: float(bound)})
            rest, squares = solve(held, np.delete(p, i)[:, None])
            if squares[0] <= rss + least:
                p = np.insert(rest[:, 0], i, bound)
    return p, rss


def _restricted(fit: Fit) -> float:
    """The logarithm of the restricted likelihood, by which fits of the same quantities with
    different weights can be compared: it counts only errors that no estimate can follow (Patterson
    and Thompson 1971). Zero where the estimates leave no error to count.
    """
    if fit.dof <= 0:
        return 0.0
    curve, J = fit.problem.slopes(np.array([[fit.estimate[n]] for n in fit.free]))
    in_percent = percent(fit.weights)
    unit = np.sqrt(fit.w) / (curve[:, 0] if in_percent else 1.0)
    R = np.linalg.qr(J[..., 0].T * unit[:, None], mode="r")
    of_curves = np.log(np.maximum(np.abs(np.diag(R)), 1 / LARGEST)).sum()
    jacobian = np.log(curve).sum() if in_percent else 0.0
    return float(-fit.dof / 2 * np.log(max(fit.rss, fit.least.sum())) - of_curves - jacobian)


def bootstrap(
    fit: Fit, kind: str = "parametric", count: int = 2000, seed: int = 0
) -> "pd.DataFrame":
    """Estimates from `count` resamples, a row each.

    `kind` is where a resample comes from (Davison and Hinkley 1997, chapter 6):

    - "parametric": the curve, with normal errors of the estimated size (log-normal for log);
    - "residual": the curve, with residuals drawn from those of the fit, less their mean and
      enlarged to the size of errors;
    - "pairs": whole measurements, drawn from those of the fit. A draw with fewer different loads
      than estimates is repeated.

    Raises ValueError for another kind, and for a fit without points to spare.
    """
    import pandas as pd

    if fit.dof <= 0:
        n = len(fit.part)
        raise ValueError(f"bootstrap: {n} points for {len(fit.free)} estimates, none spare")
    X, times = resamples(fit, kind, count, seed)
    w = fit.problem.w * times
    start = np.tile(np.array([[fit.estimate[n]] for n in fit.free]), (1, count))
    return pd.DataFrame(solve(fit.problem, start, X, w)[0].T, columns=list(fit.free))


def resamples(fit: Fit, kind: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Results of `count` resamples, a column each, and how often each measurement counts."""
    random, shape = np.random.default_rng(seed), (count, len(fit.part))
    X, once = fit.problem.X[:, 0], np.ones((len(fit.part), 1))
    if kind == "pairs":
        drawn, setting = np.empty((0, shape[1]), dtype=int), fit.columns[0].setting
        while len(drawn) < count:
            more = random.integers(shape[1], size=shape)
            different = np.array([len(np.unique(setting[row])) for row in more])
            drawn = np.concatenate([drawn, more[different >= len(fit.free)]])[:count]
        times = np.apply_along_axis(np.bincount, 1, drawn, minlength=shape[1])
        return np.tile(X[:, None], (1, count)), times.T
    curve = fit.problem.curves(np.array([[fit.estimate[n]] for n in fit.free]))[:, 0]
    size = fit.all_w**-0.5 * (curve if fit.weights == "relative" else 1.0)  # of each error
    if kind == "parametric":
        error = np.sqrt(fit.variance) * random.standard_normal(shape) * size
    elif kind == "residual":
        residual = (np.log(X / curve) if fit.weights == "log" else X - curve) / size
        residual = (residual - residual.mean()) * np.sqrt(shape[1] / fit.dof)
        error = random.choice(residual, shape) * size
    else:
        raise ValueError(f"bootstrap kind {kind!r}, expected parametric, residual or pairs")
    drawn_X = curve * np.exp(error) if fit.weights == "log" else curve + error
    if fit.weights == "relative" and not (drawn_X > 0).all():
        raise ValueError("bootstrap: errors this large make X negative; log weights do not")
    return drawn_X.T, once
