"""Which law do the data support, is it right, and which load would tell more?

Criteria and a test for nested laws compare laws; tests of what the residuals leave over say whether
a law is right, and whether its errors are as the fit assumes. An estimate on a bound counts as
known in all tests.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nummodel.fits._estimates import BESIDE, Fit, quantile
from nummodel.fits._squares import percent
from nummodel.nomenclature import show

if TYPE_CHECKING:
    import pandas as pd

#: Laws that another contains, at a bound of the one quantity that it adds.
NESTED = (("linear", "amdahl"), ("linear", "gustafson"), ("amdahl", "usl"))
#: Difference in AICc below which neither law is better (Burnham and Anderson 2002, 2.6), and above
#: which a law has considerably less support than another (the same).
CLOSE, FAR = 2.0, 7.0
#: A law is rejected if a law that contains it has a p value (`nested`) below this.
SIGNIFICANT = 0.05
#: Sets of residuals that a test simulates: fewer of many points, so that there are fewer `NUMBERS`.
DRAWS, FEWEST, NUMBERS = 10_000, 400, 2 * 10**6
#: A law is rejected, and errors are doubted, if the p value of a test is below these. Their sum is
#: below 10 %: where all is right, the two tests speak in fewer cases than that. They find what
#: `benchmarks/ADEQUACY.md` has.
WRONG, ODD = 0.01, 0.08
#: An outlier has an error that is typically this many times larger than those of other points.
LARGER = 8.0


def log_likelihood(fit: Fit) -> float:
    """Of errors that are normal, or gamma or log-normal if they are in proportion to the curve, at
    its maximum (of a gamma density by the saddle point).

    Errors smaller than the rounding of X, or of a float, count as that: points that a law meets
    exactly do not make it infinitely better than another law that meets them.
    """
    n, w = len(fit.part), fit.all_w
    spread = np.log(2 * np.pi * max(fit.rss, fit.least.sum()) / n)
    jacobian = np.log(fit.problem.X).sum() if percent(fit.weights) else 0.0
    return float(-n / 2 * (spread + 1) + np.log(w).sum() / 2 - jacobian)


def enough(fit: Fit) -> int:
    """The number of points from which on a law has an AICc: three more than its estimates."""
    return len(fit.free) + 3


def aicc(fit: Fit) -> float:
    """Akaike's criterion, corrected for few points; NaN unless there are `enough`, and for several
    columns that were fitted together.

    Burnham and Anderson (2002), 7.4, with the variance counted among the parameters. The density
    is that of X whatever the weights, so that fits with different weights can be compared.
    """
    n, k = len(fit.N), len(fit.free) + 1
    if n < enough(fit) or len(fit.columns) > 1:
        return np.nan
    return -2 * log_likelihood(fit) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def nested(small: Fit, large: Fit) -> float:
    """p value of `small` against `large`, which adds one quantity bounded where `small` has it.

    Half of the time chance alone leaves such a quantity on its bound, so the statistic is zero or
    F with equal weight (Self and Liang 1987, case 5). NaN without points to spare.
    """
    from scipy.special import fdtrc

    if large.dof <= 0 or len(large.free) != len(small.free) + 1:
        return np.nan
    return float(fdtrc(1, large.dof, max(small.rss - large.rss, 0.0) / large.variance) / 2)


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
    from scipy.special import fdtrc

    settings = fit.setting.max() + 1
    more, spare = settings - len(fit.inner), len(fit.part) - settings
    if more >= 1 and spare >= 2:
        # What is forgiven of the squares between means and curve is no scatter of repeated loads.
        rest = max(fit.scatter, fit.least.sum())
        p = float(fdtrc(more, spare, max(_between(fit), 0.0) / more / (rest / spare)))
        return LackOfFit(p, "against the scatter of repeated loads")
    p = _bends(fit)
    return None if np.isnan(p) else LackOfFit(p, "by residuals that bend with the load")


def wrong(fit: Fit) -> str:
    """Why a law is rejected, whatever other laws do: `lack_of_fit` has a p value below 1 %. Nothing
    for a law that is not rejected.
    """
    lack = lack_of_fit(fit)
    return f"it {missed(fit, lack)}" if lack and lack.p < WRONG else ""


def missed(fit: Fit, lack: LackOfFit) -> str:
    """By how much a law misses the points (root mean square), and how sure that is."""
    X, curve = fit.problem.X[:, 0], fit.all_curves
    off = float(np.sqrt(np.mean((X / curve - 1) ** 2)))
    return f"misses the points by {show(float(f'{off:.2g}'), '%')} (p = {lack.p:.2g}, {lack.how})"


def errors(fit: Fit, run: Any = None) -> tuple[float, str]:
    """The p value of a test of whether the errors are as the fit assumes, and the likeliest fault:
    "weights", "outlier" or "runs". NaN with too few points for a test. `run` says of which run each
    point is; without it, points that repeat the first loads in the same order are taken to be runs.

    Each fault is a normal distribution of the errors with another covariance. The test looks for
    all faults at once: its statistic is the mean of their likelihoods, in units of that of right
    errors. If a law is linear in its estimates, no test that ignores the estimates and the size of
    the errors notices more of just these faults, if each is equally likely (Neyman and Pearson;
    King 1987, Econometric Reviews 6:169). Where several columns were fitted, each has errors of its
    own size, and the statistic is no likelihood any more, but the p value is as right as else.
    """
    faults = _faults(fit, _blocks(fit.setting) if run is None else run)
    p = _by_chance(fit, lambda e: np.logaddexp.reduce([likely(e) for likely in faults.values()]))
    if np.isnan(p):
        return p, ""
    own = {fault: float(likely(_unit(fit.errors[:, None]))[0]) for fault, likely in faults.items()}
    return p, max(own, key=own.__getitem__)


def outlier(fit: Fit) -> int:
    """The place of the point that is farthest from the curve, beside what it moves the curve by."""
    return int(np.argmax(_studentised(fit, fit.errors[:, None])))


def scattered(fit: Fit) -> bool:
    """Whether the errors are larger than rounding."""
    return bool(fit.dof > 0 and fit.rss > fit.least.sum())


def _between(fit: Fit) -> float:
    """The squares between the means of repeated loads and the curve. Rounding may shift all points
    of a mean alike, so that much of a difference does not count.
    """
    if not fit.forgiven.any():
        return fit.rss - fit.scatter
    root = np.sqrt(fit.all_w)
    weight = np.bincount(fit.setting, fit.all_w)
    mean = np.bincount(fit.setting, root * fit.errors) / weight
    shift = np.bincount(fit.setting, root * fit.forgiven) / weight
    return float(weight @ np.maximum(abs(mean) - shift, 0.0) ** 2)


def _bends(fit: Fit) -> float:
    """Residuals have to bend even if rounding is taken off them."""
    loads = np.concatenate([c.N for c in fit.columns])
    order, e = np.lexsort([loads, *_others(fit)]), fit.errors[:, None]

    def smooth(e: np.ndarray) -> np.ndarray:
        return -_sizes(np.diff(e[order], axis=0))

    p = _by_chance(fit, smooth)
    if not fit.forgiven.any() or np.isnan(p):
        return p
    less = np.sign(e) * np.maximum(abs(e) - fit.forgiven[:, None], 0.0)
    if not less.any():
        return 1.0
    some = less != 0  # of errors by chance, the same points count
    return max(p, _by_chance(fit, lambda e: smooth(_unit(e * some)), less))


def _others(fit: Fit) -> list[np.ndarray]:
    """Other measured quantities than load and result, among them which column a point is of."""
    load = fit.law.quantities[0]
    more = (
        [v for n, v in fit.columns[0].given.items() if n != load] if len(fit.columns) == 1 else []
    )
    return more or ([fit.part] if len(fit.columns) > 1 else [])


def _faults(fit: Fit, run: Any) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """For each fault, the function that says how likely it makes errors, of which each column has
    the length 1: the logarithm of the likelihood, in units of that of right errors.
    """
    from scipy.sparse import csr_array

    faults: dict[str, Callable[[np.ndarray], np.ndarray]] = {"outlier": partial(_far, fit)}
    curve, in_percent = fit.all_curves, percent(fit.weights)
    if not _others(fit) and (curve > 0).all():  # other columns may say where errors are larger
        grow = (1 / curve if in_percent else curve)[:, None]
        faults["weights"] = _covariance(fit, lambda e: e / grow, 2 * np.log(grow).sum())
    of_run = np.unique(run, return_inverse=True)[1]
    if of_run.max() > 0 and not fit.flat:
        shared = np.sqrt(fit.all_w) * (1.0 if in_percent else curve)
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
    Q, R = np.linalg.qr(whiten(np.linalg.qr(fit.slopes)[0]))
    size = log_determinant / 2 + np.log(np.abs(R.diagonal())).sum()
    spare = len(Q) - Q.shape[1]

    def likely(e: np.ndarray) -> np.ndarray:
        e = whiten(e)
        return -size - spare / 2 * np.log(_sizes(e - Q @ (Q.T @ e)))

    return likely


def _far(fit: Fit, e: np.ndarray) -> np.ndarray:
    """Log likelihoods of the columns of `e` if one point, any with equal chance, is an outlier."""
    own = 1 - np.sum(np.linalg.qr(fit.slopes)[0] ** 2, axis=1)[:, None]
    spare = np.bincount(fit.part)[fit.part][:, None] * (1 - fit.slopes.shape[1] / len(own))
    share = LARGER**2 * own / (1 + LARGER**2 * own) * _studentised(fit, e)
    share = np.minimum(share, 1 - 1e-9)  # of a column, the point's square may be more than all
    each = -np.log1p(LARGER**2 * own) - spare * np.log1p(-share)
    return np.logaddexp.reduce(each / 2) - np.log(len(own))


def _studentised(fit: Fit, e: np.ndarray) -> np.ndarray:
    """Squares of residuals in units of their variances: a point that bends the curve towards itself
    has a small one; a point that the curve must meet has none. The unit is the sum of the squares
    of the same column: an outlier makes the error of its column look large.
    """
    own = 1 - np.sum(np.linalg.qr(fit.slopes)[0] ** 2, axis=1)
    sizes = np.array([_sizes(e[fit.part == j]) for j in range(len(fit.columns))])[fit.part]
    unit = own[:, None] * sizes
    return np.divide(e**2, unit, out=np.zeros_like(e), where=(own[:, None] > 1e-9) & (sizes > 0))


def _blocks(setting: np.ndarray) -> np.ndarray:
    """The number of the run of each point, if all runs have the same settings in the same order."""
    size = len(np.unique(setting))
    alike = len(setting) % size == 0 and (setting.reshape(-1, size) == setting[:size]).all()
    return np.arange(len(setting)) // (size if alike else len(setting))


def _by_chance(
    fit: Fit, statistic: Callable[[np.ndarray], np.ndarray], own: np.ndarray | None = None
) -> float:
    """How often normal errors, seen through the slopes of the fit and with columns of length 1,
    have a statistic as large as that of its `own`, by default those of the fit. NaN with too few
    points.
    """
    if len(fit.part) - len(fit.inner) < 3 or not scattered(fit):
        return np.nan
    found = statistic(_unit(fit.errors[:, None] if own is None else own))
    others = statistic(_drawn(fit))
    return float((1 + np.sum(others >= found)) / (1 + others.size))


def _unit(e: np.ndarray) -> np.ndarray:
    """Columns of length 1."""
    return e / np.sqrt(_sizes(e))


def _sizes(e: np.ndarray) -> np.ndarray:
    """The sum of the squares of each column."""
    return np.einsum("ij,ij->j", e, e)


@lru_cache(maxsize=1)
def _drawn(fit: Fit) -> np.ndarray:
    """Errors by chance, of length 1, as a fit leaves them."""
    Q = np.linalg.qr(fit.slopes)[0]
    e = _normal(len(fit.part))
    return _unit(e - Q @ (Q.T @ e))


@lru_cache(maxsize=1)
def _normal(points: int) -> np.ndarray:
    draws = int(np.clip(NUMBERS // points, FEWEST, DRAWS))
    return np.random.default_rng(0).standard_normal((points, draws))


def table(fits: Mapping[str, Fit]) -> "pd.DataFrame":
    """A row for each law: estimates, AICc, its distance to the best, and leave-one-out error."""
    import pandas as pd

    rows = {
        name: {"estimates": len(f.free), "aicc": aicc(f), "loo_rmse": f.loo_rmse}
        for name, f in fits.items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.insert(2, "behind", frame["aicc"] - frame["aicc"].min())
    return frame


def choose(fits: Mapping[str, Fit]) -> tuple[str | None, str]:
    """The law that the data support, and why.

    A law is rejected if it misses the points (`lack_of_fit`, 1 % level), if a law that contains it
    fits significantly better (`nested`, 5 % level), or if it fits no better than a rejected law
    with as many estimates. Of the remaining laws the one with the lowest AICc is chosen, and of
    those within `CLOSE` of it the simplest. None if all are rejected, or if fewer than two of
    several laws have an AICc; and none at a single load.
    """
    if not any(len(np.unique(f.N)) > 1 for f in fits.values()):
        return None, "one load says nothing of how throughput grows"
    every = {name: wrong(f) for name, f in fits.items()}
    missing = {name: why for name, why in every.items() if why}
    if len(fits) == 1:
        (name,) = fits
        refused = f"{name} is rejected: {missing.get(name)}"
        return (None, refused) if missing else (name, "the only law fitted")
    scores = _scores(fits)
    if len(scores) < 2:
        return None, _too_few(fits)
    rejected = _rejected(fits, scores, missing)
    against = [f"{name} is rejected: {reason}" for name, reason in rejected.items()]
    few = [f"too few points for {name}" for name in fits if name not in scores]
    if len(rejected) == len(scores):
        return None, "; ".join([*against, *few])
    chosen, reason = _simplest(fits, scores, rejected)
    if (lowest := min(scores, key=scores.__getitem__)) in rejected:
        reason += (
            f"; AICc alone would choose {lowest}, as it favours few estimates where points are few"
        )
    return chosen, "; ".join([*against, reason, *_left_out(fits, scores, chosen), *few])


def _scores(fits: Mapping[str, Fit]) -> dict[str, float]:
    """The AICc of the laws that have one."""
    every = {name: aicc(f) for name, f in fits.items()}
    return {name: score for name, score in every.items() if np.isfinite(score)}


def _too_few(fits: Mapping[str, Fit]) -> str:
    needed = ", ".join(f"{name} needs {enough(f)}" for name, f in fits.items())
    there = max(len(f.N) for f in fits.values())
    return f"too few points to compare two laws: {needed}, and there are {there}"


def _left_out(fits: Mapping[str, Fit], scores: Mapping[str, float], chosen: str) -> list[str]:
    """Whether points that are left out are predicted best by the chosen law."""
    errors = {name: fits[name].loo_rmse for name in scores}
    if not np.isfinite(errors[chosen]):
        return []
    other = min(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    tied = errors[chosen] <= errors[other] * (1 + 1e-6)
    return ["leave-one-out agrees" if tied else f"leave-one-out prefers {other}"]


def _rejected(
    fits: Mapping[str, Fit], scores: Mapping[str, float], missing: Mapping[str, str]
) -> dict[str, str]:
    """The laws with a score that are rejected, and why."""
    pairs = [pair for pair in NESTED if set(pair) <= set(scores)]
    tests = {(small, large): nested(fits[small], fits[large]) for small, large in pairs}
    by_law: dict[str, str] = {}
    for (small, large), p in sorted(tests.items(), key=lambda item: item[1]):
        if p < SIGNIFICANT:
            by_law.setdefault(small, f"{large} fits significantly better (p = {p:.2g})")
    rejected = {name: why for name, why in missing.items() if name in scores} | by_law
    for name in [name for name in scores if name not in rejected]:
        for other in list(rejected):
            as_many = len(fits[name].free) == len(fits[other].free)
            if as_many and fits[name].rss >= fits[other].rss * (1 - 1e-9):
                rejected.setdefault(name, f"it fits no better than {other}")
    return rejected


def _simplest(
    fits: Mapping[str, Fit], scores: Mapping[str, float], rejected: Mapping[str, str]
) -> tuple[str, str]:
    """The simplest of the laws that are not rejected and have about the lowest AICc, and why."""
    remaining = {name: score for name, score in scores.items() if name not in rejected}
    best = min(remaining, key=remaining.__getitem__)
    close = [name for name in remaining if remaining[name] <= remaining[best] + CLOSE]
    chosen = min(close, key=lambda name: (len(fits[name].free), remaining[name]))
    rest = " and ".join(name for name in close if name != chosen)
    if rest:
        near = f"the AICc of {rest} is within {CLOSE:g} of that of {chosen}, the simplest"
        return chosen, f"no clear winner: {near}"
    among = "of the remaining laws " * bool(rejected)
    return chosen, f"{best} has the lowest AICc {among}({remaining[best]:.1f})"


class Next(NamedTuple):
    """A load, what a measurement there would narrow ("N_opt", or "X" at twice the last load), and
    the share by which its interval would become narrower.
    """

    N: float
    what: str
    narrower: float


def next_load(fit: Fit, level: float = 0.95) -> Next | None:
    """The load at which one more measurement, of all columns, is expected to narrow most the
    interval of the peak's load or, of a curve without a peak, that of X at twice the last load.

    Candidates are the loads of the fit, those midway between neighbours, and so on up to twice the
    last load; they are whole if the loads are. The variance of the answer follows from the slopes
    of the curve by the estimates, those of the new measurement included (Atkinson, Donev and Tobias
    2007, chapter 17). None if there is no interval to narrow, and if weights were given for each
    point, as that of the new one is not known.
    """
    if fit.dof <= 0 or fit.weights == "given" or not fit.inner or fit.flat:
        return None
    last, peak = fit.N.max(), fit.peak()
    if peak and peak[0] > fit.first:  # the peak moves with the slope of the curve there
        below, above = fit.slopes_at(peak[0] * np.array([1 - BESIDE, 1 + BESIDE]))
        what, moved = "N_opt", above - below
    else:
        what, moved = "X", fit.slopes_at(np.array([2 * last]))[0]
    N = np.append(np.unique(fit.N), 2 * last)
    N = np.union1d(N, np.sqrt(N[1:] * N[:-1]))
    N = np.unique(np.round(N)) if (fit.N == np.round(fit.N)).all() else N
    columns = range(len(fit.columns))
    units = [
        np.sqrt(c.w[0]) / (fit.at(N, j) if percent(fit.weights) else 1.0)
        for j, c in enumerate(fit.columns)
    ]
    J = np.array([fit.slopes_at(N, j) * np.reshape(units[j], (-1, 1)) for j in columns])
    J = J.swapaxes(0, 1)
    C = fit.covariance / fit.variance
    carried = J @ C @ moved
    error = np.eye(len(fit.columns)) + J @ C @ J.swapaxes(1, 2)
    gain = np.sum(carried * np.linalg.solve(error, carried[..., None])[..., 0], axis=1)
    best = int(np.argmax(gain))
    remaining = np.sqrt(max(1 - gain[best] / (moved @ C @ moved), 0.0))
    t = quantile(level, fit.dof + len(fit.columns)) / quantile(level, fit.dof)
    return Next(float(N[best]), what, float(1 - t * remaining))
