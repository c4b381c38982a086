"""Is a law right, and do its intervals hold? Tests of what the residuals leave over.

An estimate on a bound counts as known in all tests.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits import _errors
from nummodel.fits._fit import Fit
from nummodel.nomenclature import show

#: A lead in log-likelihood (`Fit.lead`) below which the points hardly tell which weights are right.
CLOSE = 2.0
#: Sets of residuals that a test simulates: fewer of many points, so that there are fewer `NUMBERS`.
DRAWS, FEWEST, NUMBERS = 10_000, 400, 2 * 10**6
#: There is a caution if the p value of a test is below these: of the law (which is then rejected),
#: of the weights and of outliers, of runs. Their sum, with `ODD` twice, is below 10 %: where all is
#: right, these tests caution in fewer cases than that. `benchmarks/ADEQUACY.md` has what they find.
WRONG, ODD, TOGETHER = 0.01, 0.035, 0.015


class LackOfFit(NamedTuple):
    """The p value of a test of whether a law is right, and how it was tested."""

    p: float
    how: str


def lack_of_fit(fit: Fit) -> LackOfFit | None:
    """Against the scatter of repeated loads, or where there are too few, by residuals that bend.

    With repeated loads this is the F test of the squares between the means and the curve against
    those around the means (Draper and Smith 1998, 2.1). Without them it is Durbin and Watson's: the
    steps from one residual to the next are small beside the residuals if these bend. None with too
    few points for either test.
    """
    fit = fit.whole
    levels, around = len(fit.means[0]), fit.means[2]
    p = _explained(fit, levels - len(fit.inner), fit.rss - around)
    if p is not None:
        return LackOfFit(p, "against the scatter of repeated loads")
    p = _bends(fit)
    return None if p is None else LackOfFit(p, "by residuals that bend with the load")


def missed(fit: Fit, lack: LackOfFit) -> str:
    """By how much a law misses the points (root mean square), and how sure that is."""
    off = float(np.sqrt(np.mean((fit.X / fit.at(fit.N) - 1) ** 2)))
    return f"misses the points by {100 * off:.2g} % (p = {lack.p:.2g}, {lack.how})"


def cautions(fit: Fit, run: Any = None) -> list[str]:
    """Sentences about what may make the intervals of a fit wrong: a law that misses the points, a
    point far from the others, errors that grow otherwise than the weights say, and runs.

    `run` says of which run each point is. Without it, points that repeat the first loads in the
    same order are taken to be runs.
    """
    fit = fit.whole
    load, sentences = fit.law.quantities[0], []
    lack = lack_of_fit(fit)
    if lack and lack.p < WRONG:
        sentences.append(f"the law {missed(fit, lack)}")
    more, other = ("less", "absolute") if _errors.percent(fit.weights) else ("more", "log")
    if fit.lead < CLOSE and _scattered(fit):
        sentences.append(
            f"these points hardly tell how errors grow with {fit.law.result}: {fit.weights} "
            f"weights are {show(float(np.exp(fit.lead)))} times as likely as {other} weights, so "
            "compare the intervals by both"
        )
    elif _below(ODD, _growth(fit)):
        sentences.append(
            f"errors grow {more} with {fit.law.result} than {fit.weights} weights say, so that "
            f"intervals are wrong: try --weights {other} (in a report: -p weights={other})"
        )
    if _below(ODD, _outlier(fit)):
        far = show(float(fit.N[np.argmax(_studentised(fit, _signed(fit)))]))
        sentences.append(
            f"the point at {load} = {far} is farther from the curve than chance explains: "
            "check how it was measured"
        )
    if _below(TOGETHER, _runs(fit, _blocks(fit.setting) if run is None else run)):
        sentences.append(
            "the points of the same run are too high or too low together, but intervals assume "
            "that each point has its own error: the intervals are too narrow, and only "
            "measurements of more runs help"
        )
    return sentences


def _scattered(fit: Fit) -> bool:
    """Whether the errors are larger than rounding."""
    return bool(fit.dof > 0 and fit.rss > fit.w @ fit.least)


def _below(level: float, p: float | None) -> bool:
    return p is not None and p < level


def _bends(fit: Fit) -> float | None:
    order = np.lexsort([fit.N, *_columns(fit)])
    return _by_chance(fit, lambda e: -_sizes(np.diff(e[order], axis=0)))


def _growth(fit: Fit) -> float | None:
    """p value of the weights against the other kind: that errors have the same size everywhere, if
    the weights are by percentages, and else that they are in proportion to the curve. None with
    other columns, as they may say where errors are larger.

    If the law is linear in its estimates, no other test that ignores the size of the errors notices
    the other kind more often than the ratio of the two sums of squares does (King 1987, Econometric
    Reviews 6:169).
    """
    curve = fit.at(fit.N)
    if _columns(fit) or not (curve > 0).all():
        return None
    factor = curve if _errors.percent(fit.weights) else 1 / curve
    Q = np.linalg.qr(fit._slopes * factor[:, None])[0]
    return _by_chance(fit, lambda e: -_sizes(_seen(e * factor[:, None], Q)))


def _outlier(fit: Fit) -> float | None:
    return _by_chance(fit, lambda e: _sizes(e) * _studentised(fit, e).max(axis=0))


def _studentised(fit: Fit, e: np.ndarray) -> np.ndarray:
    """Squares of residuals in units of their variances: a point that bends the curve towards itself
    has a small one; a point that the curve must meet has none. The unit is the sum of the squares,
    and in a joint fit that of the same part: an outlier makes the error of its part look large.
    """
    own = 1 - np.sum(np.linalg.qr(fit._slopes)[0] ** 2, axis=1)
    part = np.unique(fit.known.get("part", np.ones(len(own))), return_inverse=True)[1]
    sizes = np.array([_sizes(e[part == j]) for j in range(part.max() + 1)])[part]
    unit = own[:, None] * sizes
    return np.divide(e**2, unit, out=np.zeros_like(e), where=(own[:, None] > 1e-9) & (sizes > 0))


def _columns(fit: Fit) -> list[np.ndarray]:
    """Other measured quantities than load and result, among them which part of a joint fit."""
    return [v for v in fit.known.values() if np.ndim(v)]


def _blocks(setting: np.ndarray) -> np.ndarray:
    """The number of the run of each point, if all runs have the same settings in the same order."""
    size = len(np.unique(setting))
    alike = len(setting) % size == 0 and (setting.reshape(-1, size) == setting[:size]).all()
    return np.arange(len(setting)) // (size if alike else len(setting))


def _runs(fit: Fit, run: Any) -> float | None:
    """p value of an F test: a run has a factor of its own that all its points share."""
    of_run = np.unique(run, return_inverse=True)[1]
    if fit._flat or of_run.max() == 0:
        return None
    factor = np.sqrt(fit.w) * (1.0 if _errors.percent(fit.weights) else fit.at(fit.N))
    size = np.bincount(of_run, factor**2)

    def within(v: np.ndarray) -> np.ndarray:
        """What the factors of the runs leave of it."""
        return v - factor * (np.bincount(of_run, factor * v) / size)[of_run]

    slopes = fit._slopes / np.abs(fit._slopes).max(axis=0)
    inside = np.array([within(slope) for slope in slopes.T]).reshape(-1, len(factor)).T
    U, sizes, _ = np.linalg.svd(inside, full_matrices=False)
    Q = U[:, sizes > 1e-9 * np.sqrt(len(U))]  # the factors move the curve as its scale does
    rest = _sizes(_seen(within(_signed(fit)[:, 0])[:, None], Q))[0]
    return _explained(fit, len(size) + Q.shape[1] - len(fit.inner), fit.rss - rest)


def _explained(fit: Fit, more: int, squares: float) -> float | None:
    """p value of the F test of `squares` that `more` estimates would explain."""
    from scipy.special import fdtrc

    spare = len(fit.N) - len(fit.inner) - more
    if more < 1 or spare < 2:
        return None
    rest = max(fit.rss - squares, fit.w @ fit.least)  # rounding alone scatters by as much
    return float(fdtrc(more, spare, max(squares, 0.0) / more / (rest / spare)))


def _by_chance(fit: Fit, statistic: Callable[[np.ndarray], np.ndarray]) -> float | None:
    """How often normal errors, seen through the slopes of the fit, have a statistic as large beside
    the sum of their squares.
    """
    if len(fit.N) - len(fit.inner) < 3 or not _scattered(fit):
        return None
    own, others = (statistic(e) / _sizes(e) for e in (_signed(fit), _drawn(fit)))
    return float((1 + np.sum(others >= own)) / (1 + others.size))


def _signed(fit: Fit) -> np.ndarray:
    """The weighted errors of a fit, in a column."""
    squares = fit.w * _errors.squares(fit.weights, fit.X, fit.at(fit.N))
    return (np.sign(fit.residuals) * np.sqrt(squares))[:, None]


def _sizes(e: np.ndarray) -> np.ndarray:
    """The sum of the squares of each column."""
    return np.einsum("ij,ij->j", e, e)


def _seen(e: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """What the best combination of the columns `Q` leaves of each column of `e`."""
    return e - Q @ (Q.T @ e)


@lru_cache(maxsize=1)
def _drawn(fit: Fit) -> np.ndarray:
    return _seen(_normal(len(fit.N)), np.linalg.qr(fit._slopes)[0])


@lru_cache(maxsize=1)
def _normal(points: int) -> np.ndarray:
    draws = int(np.clip(NUMBERS // points, FEWEST, DRAWS))
    return np.random.default_rng(0).standard_normal((points, draws))
