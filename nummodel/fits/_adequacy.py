"""Is a law right, and do its intervals hold? Tests of what the residuals leave over.

An estimate on a bound counts as known in all tests.
"""

from collections.abc import Callable
from functools import lru_cache, partial
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
#: and of the errors. Their sum is below 10 %: where all is right, the two tests caution in fewer
#: cases than that. `benchmarks/ADEQUACY.md` has what they find.
WRONG, ODD = 0.01, 0.08
#: An outlier has an error that is typically this many times larger than those of other points.
LARGER = 8.0


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
    # What is forgiven of the squares between means and curve is no scatter of repeated loads.
    rest = max(fit.means[2], fit.w @ fit.least)
    p = _explained(fit, len(fit.means[0]) - len(fit.inner), _between(fit), rest)
    if p is not None:
        return LackOfFit(p, "against the scatter of repeated loads")
    p = _bends(fit)
    return None if np.isnan(p) else LackOfFit(p, "by residuals that bend with the load")


def errors(fit: Fit, run: Any = None) -> tuple[float, str]:
    """The p value of a test of whether the errors are as the fit assumes, and the likeliest fault:
    "weights", "outlier" or "runs". NaN with too few points for a test.

    Each fault is a normal distribution of the errors with another covariance. The test looks for
    all faults at once: its statistic is the mean of their likelihoods, in units of that of right
    errors. If a law is linear in its estimates, no test that ignores the estimates and the size of
    the errors notices more of just these faults, if each is equally likely (Neyman and Pearson;
    King 1987, Econometric Reviews 6:169). In a joint fit, where each part has errors of its own
    size, the statistic is no likelihood any more, but the p value is as right as else.
    """
    fit = fit.whole
    faults = _faults(fit, _blocks(fit.setting) if run is None else run)
    p = _by_chance(fit, lambda e: np.logaddexp.reduce([likely(e) for likely in faults.values()]))
    if np.isnan(p):
        return p, ""
    own = {fault: float(likely(_unit(_signed(fit)))[0]) for fault, likely in faults.items()}
    return p, max(own, key=own.__getitem__)


def missed(fit: Fit, lack: LackOfFit) -> str:
    """By how much a law misses the points (root mean square), and how sure that is."""
    off = float(np.sqrt(np.mean((fit.X / fit.at(fit.N) - 1) ** 2)))
    return f"misses the points by {show(float(f'{off:.2g}'), '%')} (p = {lack.p:.2g}, {lack.how})"


def cautions(fit: Fit, run: Any = None, x: str = "", y: str = "") -> list[str]:
    """Sentences about what may make the intervals of a fit wrong: a law that misses the points, a
    point far from the others, errors that grow otherwise than the weights say, and runs.

    `run` says of which run each point is. Without it, points that repeat the first loads in the
    same order are taken to be runs. `x` and `y` are what to call load and result.
    """
    fit = fit.whole
    x, y = x or fit.law.quantities[0], y or fit.law.result
    sentences = []
    lack = lack_of_fit(fit)
    if lack and lack.p < WRONG:
        sentences.append(f"the law {missed(fit, lack)}")
    more, other = ("less", "absolute") if _errors.percent(fit.weights) else ("more", "log")
    unsure = fit.lead < CLOSE and _scattered(fit)
    if unsure:
        sentences.append(
            f"these points hardly tell how errors grow with {y}: {fit.weights} "
            f"weights are {show(float(np.exp(fit.lead)))} times as likely as {other} weights, so "
            "compare the intervals by both"
        )
    p, fault = errors(fit, run)
    if p < ODD and fault == "weights" and not unsure:
        sentences.append(
            f"errors seem to grow {more} with {y} than the fit assumes ({fit.weights} weights), "
            "or the law misses some points: the intervals of laws may be wrong, but not those of "
            f"forecasts; try --weights {other} (in a report: -p weights={other})"
        )
    if p < ODD and fault == "outlier":
        far = show(float(fit.N[np.argmax(_studentised(fit, _signed(fit)))]))
        sentences.append(
            f"the point at {x} = {far} is farther from the curve than chance explains: "
            "measure it again, as it may be wrong"
        )
    if p < ODD and fault == "runs":
        sentences.append(
            "the points of the same run are too high or too low together, but intervals assume "
            "that each point has its own error: the intervals are too narrow, and only "
            "measurements of more runs help"
        )
    return sentences


def _scattered(fit: Fit) -> bool:
    """Whether the errors are larger than rounding."""
    return bool(fit.dof > 0 and fit.rss > fit.w @ fit.least)


def _between(fit: Fit) -> float:
    """The squares between the means of repeated loads and the curve. Rounding may shift all points
    of a mean alike, so that much of a difference does not count (`_halves`).
    """
    if not _halves(fit).any():
        return fit.rss - fit.means[2]
    w, root = fit.w, np.sqrt(fit.w)
    weight = np.bincount(fit.setting, w)
    mean = np.bincount(fit.setting, root * _signed(fit)[:, 0]) / weight
    shift = np.bincount(fit.setting, root * _halves(fit)) / weight
    return float(weight @ np.maximum(abs(mean) - shift, 0.0) ** 2)


def _halves(fit: Fit) -> np.ndarray:
    """By how much each point may be off without speaking against the law, as weighted: half a unit
    of its last digit, or its slack.
    """
    half = np.maximum(fit.half, getattr(fit, "slack", 0.0))
    return np.sqrt(fit.w) * (half / fit.X if _errors.percent(fit.weights) else half)


def _bends(fit: Fit) -> float:
    """Residuals have to bend even if rounding is taken off them."""
    order, e = np.lexsort([fit.N, *_columns(fit)]), _signed(fit)

    def smooth(e: np.ndarray) -> np.ndarray:
        return -_sizes(np.diff(e[order], axis=0))

    p = _by_chance(fit, smooth)
    if not _halves(fit).any() or np.isnan(p):
        return p
    less = np.sign(e) * np.maximum(abs(e) - _halves(fit)[:, None], 0.0)
    if not less.any():
        return 1.0
    some = less != 0  # of errors by chance, the same points count
    return max(p, _by_chance(fit, lambda e: smooth(_unit(e * some)), less))


def _faults(fit: Fit, run: Any) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """For each fault, the function that says how likely it makes errors, of which each column has
    the length 1: the logarithm of the likelihood, in units of that of right errors.
    """
    from scipy.sparse import csr_array

    faults: dict[str, Callable[[np.ndarray], np.ndarray]] = {"outlier": partial(_far, fit)}
    curve = fit.at(fit.N)
    if not _columns(fit) and (curve > 0).all():  # other columns may say where errors are larger
        grow = (1 / curve if _errors.percent(fit.weights) else curve)[:, None]
        faults["weights"] = _covariance(fit, lambda e: e / grow, 2 * np.log(grow).sum())
    of_run = np.unique(run, return_inverse=True)[1]
    if of_run.max() > 0 and not fit._flat:
        shared = np.sqrt(fit.w) * (1.0 if _errors.percent(fit.weights) else curve)
        shared /= np.sqrt(np.mean(shared**2))  # on average as large as each point's own error
        more = 1 + np.bincount(of_run, shared**2)
        back = ((1 - 1 / np.sqrt(more)) / (more - 1))[of_run] * shared
        F = csr_array((shared, (np.arange(len(shared)), of_run)))

        def apart(e: np.ndarray) -> np.ndarray:
            return e - back[:, None] * (F.T @ e)[of_run]

        faults["runs"] = _covariance(fit, apart, np.log(more).sum())
    return faults


def _covariance(
    fit: Fit, whiten: Callable[[np.ndarray], np.ndarray], log_determinant: float
) -> Callable[[np.ndarray], np.ndarray]:
    """How likely a covariance makes errors, seen through the slopes of the fit: one that `whiten`
    turns into that of right errors.
    """
    Q, R = np.linalg.qr(whiten(np.linalg.qr(fit._slopes)[0]))
    size = log_determinant / 2 + np.log(np.abs(R.diagonal())).sum()
    spare = len(Q) - Q.shape[1]

    def likely(e: np.ndarray) -> np.ndarray:
        e = whiten(e)
        return -size - spare / 2 * np.log(_sizes(e - Q @ (Q.T @ e)))

    return likely


def _far(fit: Fit, e: np.ndarray) -> np.ndarray:
    """How likely an outlier at one of the points makes errors: on average over all points."""
    own = 1 - np.sum(np.linalg.qr(fit._slopes)[0] ** 2, axis=1)[:, None]
    part = np.unique(fit.known.get("part", np.zeros(len(own))), return_inverse=True)[1]
    spare = np.bincount(part)[part][:, None] * (1 - fit._slopes.shape[1] / len(own))
    share = LARGER**2 * own / (1 + LARGER**2 * own) * _studentised(fit, e)
    share = np.minimum(share, 1 - 1e-9)  # of a part, the point's square may be more than all
    each = -np.log1p(LARGER**2 * own) - spare * np.log1p(-share)
    return np.logaddexp.reduce(each / 2) - np.log(len(own))


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


def _explained(fit: Fit, more: int, squares: float, rest: float) -> float | None:
    """p value of the F test of `squares` that `more` estimates would explain, against the `rest`
    of the squares.
    """
    from scipy.special import fdtrc

    spare = len(fit.N) - len(fit.inner) - more
    if more < 1 or spare < 2:
        return None
    return float(fdtrc(more, spare, max(squares, 0.0) / more / (rest / spare)))


def _by_chance(
    fit: Fit,
    statistic: Callable[[np.ndarray], np.ndarray],
    own: np.ndarray | None = None,
) -> float:
    """How often normal errors, seen through the slopes of the fit and with columns of length 1,
    have a statistic as large as that of its `own`, by default those of the fit. NaN with too few
    points.
    """
    if len(fit.N) - len(fit.inner) < 3 or not _scattered(fit):
        return np.nan
    found = statistic(_unit(_signed(fit) if own is None else own))
    others = statistic(_drawn(fit))
    return float((1 + np.sum(others >= found)) / (1 + others.size))


def _unit(e: np.ndarray) -> np.ndarray:
    """Columns of length 1."""
    return e / np.sqrt(_sizes(e))


def _signed(fit: Fit) -> np.ndarray:
    """The weighted errors of a fit, in a column."""
    squares = fit.w * _errors.squares(fit.weights, fit.X, fit.at(fit.N))
    return (np.sign(fit.residuals) * np.sqrt(squares))[:, None]


def _sizes(e: np.ndarray) -> np.ndarray:
    """The sum of the squares of each column."""
    return np.einsum("ij,ij->j", e, e)


@lru_cache(maxsize=1)
def _drawn(fit: Fit) -> np.ndarray:
    """Errors by chance, of length 1, as a fit leaves them."""
    Q = np.linalg.qr(fit._slopes)[0]
    e = _normal(len(fit.N))
    return _unit(e - Q @ (Q.T @ e))


@lru_cache(maxsize=1)
def _normal(points: int) -> np.ndarray:
    draws = int(np.clip(NUMBERS // points, FEWEST, DRAWS))
    return np.random.default_rng(0).standard_normal((points, draws))
