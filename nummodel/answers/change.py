"""What `nummodel compare` says of two tables: did a change help, at which loads, by how much?

Errors are those of repeated loads, or without them those of a law fitted to each table at the loads
that both have: the Universal Scalability Law, or a closed system where that is rejected. Where both
are, their errors would hide a change, and the errors are those of the measured ratios instead.
"""

from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import closed, fit, lack_of_fit, laws
from nummodel.models import scaling
from nummodel.nomenclature import show
from nummodel.records.columns import Points

#: Simulated errors from which the width of simultaneous intervals follows.
DRAWS = 20_000
#: Degrees of freedom of repeated loads from which on they tell the size of errors.
REPEATS = 3
#: Errors of the two tables have one size, unless the p value of that is below this.
DIFFER = 0.05
#: The weights of a fit where errors are in proportion to the throughput, and where they are not.
KINDS = {True: "log", False: "absolute"}
#: Loads in both tables from which on curves tell it.
LOADS = 4


class Side(NamedTuple):
    """One of the two tables: heights of the throughput at the shared loads (logarithms of them, if
    errors are in proportion), their covariance in units of the error variance, the measurements,
    the squares of their errors with the degrees of freedom, and whether the curve misses them.
    """

    height: np.ndarray
    covariance: np.ndarray
    X: np.ndarray
    squares: float
    dof: int
    misses: bool = False


def repeats(points: Points, loads: np.ndarray, log: bool) -> Side:
    """The means of the measurements at each load; the squares around the means of all loads."""
    N, place = np.unique(points.N, return_inverse=True)
    X = np.log(points.X) if log else points.X
    w = np.ones(len(X)) if isinstance(points.weights, str) else points.weights
    weight = np.bincount(place, w)
    mean = np.bincount(place, w * X) / weight
    shared = np.isin(N, loads)
    squares = float(w @ (X - mean[place]) ** 2)
    return Side(mean[shared], np.diag(1 / weight[shared]), points.X, squares, len(X) - len(N))


def curve(points: Points, loads: np.ndarray, log: bool, system: bool = False) -> Side:
    """The curve of the USL, or of a closed system, fitted to the measurements at these loads."""
    points = points.where(np.isin(points.N, loads))
    if system:
        result = closed.fit_closed(points.N, points.X, {})
    else:
        weights = points.weights if not isinstance(points.weights, str) else KINDS[log]
        result = fit(scaling.LAWS["usl"], {"N": points.N, "X": points.X}, weights)
    X, slopes = result.at(loads), result.slopes_at(loads)
    slopes = slopes / X[:, None] if log else slopes
    moved = slopes @ result.root
    test = lack_of_fit(result)
    misses = test is not None and test.p < laws.SIGNIFICANT
    heights = np.log(X) if log else X
    return Side(heights, moved @ moved.T, points.X, result.rss, result.dof, misses)


def curves(tables: list[Points], loads: np.ndarray, log: bool) -> tuple[list[Side], str]:
    """The curves of the first law that no test rejects, or those of the USL; and its name."""
    usl = [curve(points, loads, log) for points in tables]
    given = not all(isinstance(points.weights, str) for points in tables)
    if not log or given or not any(side.misses for side in usl):
        return usl, "the USL"
    systems: list[Side] = []
    with suppress(InputError):  # too few loads
        for points in tables:
            systems.append(curve(points, loads, log, system=True))
            if systems[-1].misses or systems[-1].dof <= 0:
                return usl, "the USL"
        return systems, "closed systems"
    return usl, "the USL"


def paired(sides: list[Side], loads: np.ndarray) -> list[Side]:
    """The means of the measurements, of both tables, with the scatter of the logarithms of their
    ratios around a straight line over the logarithm of the load. A gain that changes otherwise with
    the load adds to this scatter.
    """
    before, after = sides
    scale = np.sqrt(np.diagonal(before.covariance) + np.diagonal(after.covariance))
    line = np.column_stack([np.ones(len(loads)), np.log(loads)]) / scale[:, None]
    logs = (after.height - before.height) / scale
    rest = logs - line @ np.linalg.lstsq(line, logs)[0]
    found = after._replace(squares=float(rest @ rest), dof=len(loads) - 2)
    return [before._replace(squares=0.0, dof=0), found]


def ratios(before: Side, after: Side, log: bool, level: float) -> np.ndarray:
    """Of each shared load, and of all together: after over before, with an interval (low, high).

    The last row is of the geometric mean over the loads, or of the sum if errors are of one size.
    All intervals hold at once at this level. Those of ratios of sums are Fieller's (1954).
    """
    count = len(before.height)
    rows = np.vstack([np.eye(count), np.full(count, 1 / count)])
    b, a = rows @ before.height, rows @ after.height
    covariances = np.array([rows @ side.covariance @ rows.T for side in (before, after)])
    dof = before.dof + after.dof
    variances = np.full(2, (before.squares + after.squares) / dof)
    if differ(before, after):
        spare = np.array([before.dof, after.dof])
        variances = np.array([before.squares, after.squares]) / spare
        parts = variances[:, None] * np.diagonal(covariances, axis1=1, axis2=2)
        # Of the row that has the fewest (Satterthwaite 1946).
        dof = np.min(parts.sum(axis=0) ** 2 / (parts**2 / spare[:, None]).sum(axis=0))
    covariances = variances[:, None, None] * covariances
    wide = _width(covariances.sum(axis=0), dof, level) if variances.any() else 0.0
    # Rounding of floats is no difference.
    vb, va = (np.maximum(np.diag(c) * wide**2, (1e-9 * b) ** 2) for c in covariances)
    if log:
        half = np.sqrt(va + vb)
        return np.exp([a - b, a - b - half, a - b + half]).T
    with np.errstate(all="ignore"):
        root = np.sqrt(a**2 * vb + b**2 * va - va * vb)
        low, high = ((a * b + sign * root) / (b**2 - vb) for sign in (-1, 1))
    known = b**2 > vb  # else the throughput before may as well be zero
    return np.array([a / b, np.where(known, low, np.nan), np.where(known, high, np.nan)]).T


def differ(before: Side, after: Side) -> bool:
    """Whether the errors of the two tables have different sizes, by the F test."""
    from scipy.special import fdtrc

    if not (before.dof and after.dof and before.squares > 0 < after.squares):
        return False
    ratio = after.squares / after.dof / (before.squares / before.dof)
    tails = fdtrc(after.dof, before.dof, ratio), fdtrc(before.dof, after.dof, 1 / ratio)
    return bool(min(tails) < DIFFER / 2)


def _width(covariance: np.ndarray, dof: float, level: float) -> float:
    """The half-width of each interval, in standard errors, at which all intervals together hold the
    truth with probability `level`.

    The half-width is a quantile of the largest of several correlated t values, and is found by
    simulation. Where `level` is too high for the simulation, the half-width is Sidak's bound.
    """
    from scipy.special import stdtrit

    if (1 - level) * DRAWS < 100:
        return float(stdtrit(dof, (1 + level ** (1 / len(covariance))) / 2))
    deviation = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / deviation / deviation[:, None])
    independent, scale = _draws(len(values), dof)
    normal = independent @ (vectors * values.clip(0) ** 0.5).T
    return float(np.quantile(np.abs(normal).max(axis=1) / scale, level))


@lru_cache(maxsize=2)
def _draws(count: int, dof: float) -> tuple[np.ndarray, np.ndarray]:
    """`DRAWS` rows of independent normal values, and an estimate of their standard error for each
    row; the same values at every call.
    """
    random = np.random.default_rng(0)
    return random.standard_normal((DRAWS, count)), np.sqrt(random.chisquare(dof, DRAWS) / dof)


def _determined(covariance: np.ndarray) -> bool:
    """Whether it is one: points that leave a combination of estimates open make it garbage."""
    return bool(np.isfinite(covariance).all() and (np.diag(covariance) >= 0).all())


def compared(tables: list[Points], weights: str, level: float) -> dict[str, Any]:
    """The measurements before and after a change, compared; a number that cannot be computed is
    None. The weights are those of a fit; with "auto" errors have the same percentage, unless
    repeated loads speak for the same size. Raises InputError for tables that have no load in
    common.
    """
    before, after = tables
    loads = np.intersect1d(before.N, after.N)
    if not len(loads):
        raise InputError("the two files have no load in common, expected the same loads in both")
    kinds = (True, False) if weights == "auto" else (weights in ("relative", "log"),)
    means = {log: [repeats(points, loads, log) for points in tables] for log in kinds}
    sides, how = means, "measured means, with the scatter of repeated loads"
    if sum(side.dof for side in means[kinds[0]]) < REPEATS:
        sides, how = (
            {},
            f"measurements: too few loads are repeated, and fewer than {LOADS} are in both",
        )
        if len(loads) >= LOADS:  # curves bend towards the errors, and do not tell their kind
            found, law = curves(tables, loads, kinds[0])
            sides, how = {kinds[0]: found}, f"fitted curves of {law}, with the scatter around them"
            if kinds[0] and any(side.misses for side in sides[True]):
                sides = {True: paired(means[True], loads)}
                how = "measurements, as the USL misses some, with the scatter of their ratios"
    log = min(sides, key=lambda log: _deviance(sides[log], log), default=kinds[0])
    chosen = sides.get(log, [])
    warnings = [warning for points in tables for warning in points.warnings]
    if (before.x, before.y) != (after.x, after.y):
        names = f"{before.y} against {before.x}", f"{after.y} against {after.x}"
        warnings.append("{} is compared with {}".format(*names))
    if any(side.misses for side in chosen):
        warnings.append(
            "the USL misses some points, so the ratios of its curves may be off: if each load is "
            "measured several times, the ratios are those of the measurements"
        )
    if chosen and "scatter of repeated" in how and not all(side.dof for side in chosen):
        warnings.append(
            "one of the files repeats no load: its errors are taken to be as large as those of the "
            "other file, which nothing tests"
        )
    rows = np.full((len(loads) + 1, 3), np.nan)
    if chosen and all(map(_determined, (side.covariance for side in chosen))):
        rows = ratios(chosen[0], chosen[1], log, level)
    heights = np.array([side.height for side in means[log]])
    b, a = np.exp(heights) if log else heights
    keys = ("N", "before", "after", "measured", "ratio", "low", "high")
    figures = np.column_stack([loads, b, a, a / b, rows[:-1]])
    result = {
        "x": before.x,
        "y": before.y,
        "n": [len(points.N) for points in tables],
        "weights": KINDS[log] if weights == "auto" else weights,
        "how": how,
        "loads": [checked(dict(zip(keys, row, strict=True))) for row in figures],
        "together": checked(dict(zip(keys[4:], rows[-1], strict=True))),
        "warnings": warnings,
    }
    return {"answer": _answer(result, level)} | result


def _deviance(sides: list[Side], log: bool) -> float:
    """Minus twice the logarithm of the likelihood of the measurements, but for a constant."""
    X = np.concatenate([side.X for side in sides])
    squares = max(sum(side.squares for side in sides) / len(X), 1e-300)
    return float(len(X) * np.log(squares) + 2 * log * np.log(X).sum())


def checked(row: dict[str, float]) -> dict[str, Any]:
    """A row of figures with None for those that do not exist, and what its interval shows."""
    shown = "higher" if row["low"] > 1 else "lower" if row["high"] < 1 else None
    return {n: float(v) if np.isfinite(v) else None for n, v in row.items()} | {"shown": shown}


def _answer(result: dict[str, Any], level: float) -> str:
    """Whether the change helped, at which loads, and by how much, in sentences."""
    rows, together, x, y = (result[key] for key in ("loads", "together", "x", "y"))
    if together["low"] is None:
        return (
            f"Whether {y} has changed cannot be said: the size of the errors is not known. Measure "
            "each load several times before and after the change."
        )
    verbs, sentences = {"higher": "helps", "lower": "hurts"}, []
    for shown, verb in verbs.items():
        if some := [row for row in rows if row["shown"] == shown]:
            at = ", ".join(show(row["N"]) for row in some)
            sizes = [abs(row["ratio"] - 1) for row in some]
            alike = show(min(sizes), "%") == show(max(sizes), "%")
            by = show(sizes[0] if alike else [min(sizes), max(sizes)], "%")
            sentences.append(f"The change {verb} at {x} = {at}: {y} is {by} {shown} there.")
    if sentences and (others := [show(row["N"]) for row in rows if not row["shown"]]):
        sentences.append(f"At {x} = {', '.join(others)} no difference is shown.")
    start = "Over"
    if not sentences:
        verb = verbs.get(together["shown"], "")
        alone = f"The change {verb}, though no load alone shows it: over"
        start = alone if verb else "No difference shown: over"
    percent = [100 * (together[key] - 1) for key in ("ratio", "low", "high")]
    sentences.append(
        "{} the {} that both files have, {} changes by {:+.3g} % ({:.15g} % interval: "
        "{:+.3g} to {:+.3g} %).".format(
            start,
            f"{len(rows)} loads" if len(rows) > 1 else "only load",
            y,
            percent[0],
            100 * level,
            *percent[1:],
        )
    )
    return " ".join(sentences)


def text(result: dict[str, Any], level: float) -> str:
    """The result as a table for people."""
    lines = [
        "{y} against {x}: {n[0]} points before, {n[1]} after, {weights} weights".format(**result),
        f"ratio: after / before, from {result['how']}",
        f"in brackets: {100 * level:.15g} % intervals, which hold all together",
        "",
        f"{result['x']:>8}{'before':>12}{'after':>12}{'ratio':>8}",
    ]
    for row in result["loads"]:
        ratio = row["measured"] if row["ratio"] is None else row["ratio"]
        figures = f"{row['N']:>8g}{row['before']:>12.5g}{row['after']:>12.5g}{ratio:>8.3f}"
        lines.append(figures + _span(row))
    if result["together"]["ratio"] is not None:
        lines.append(f"together{result['together']['ratio']:>32.3f}{_span(result['together'])}")
    return "\n".join(lines)


def _span(row: dict[str, Any]) -> str:
    """The interval of a ratio in brackets, and what it shows."""
    if row["low"] is None:
        return ""
    return f"  [{row['low']:.3f}, {row['high']:.3f}]  {row['shown'] or ''}".rstrip()
