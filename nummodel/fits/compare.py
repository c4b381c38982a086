"""Which law do the data support? Criteria, a test for nested laws, and a choice in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nummodel.fits import _errors
from nummodel.fits._adequacy import WRONG, lack_of_fit, missed

if TYPE_CHECKING:
    import pandas as pd

    from nummodel.fits._fit import Fit

#: Laws that another contains, at a bound of the one quantity that it adds.
NESTED = (("linear", "amdahl"), ("linear", "gustafson"), ("amdahl", "usl"))

#: Difference in AICc below which neither law is better (Burnham and Anderson 2002, 2.6).
CLOSE = 2.0
#: Difference in AICc above which a law has considerably less support than another (the same).
FAR = 7.0
#: A law is rejected if a law that contains it has a p value (`nested`) below this.
SIGNIFICANT = 0.05


def log_likelihood(fit: "Fit") -> float:
    """Of errors that are normal, or gamma or log-normal if they are in proportion to the curve, at
    its maximum (of a gamma density by the saddle point).

    Errors smaller than the rounding of X, or of a float, count as that: points that a law meets
    exactly do not make it infinitely better than another law that meets them.
    """
    n = len(fit.N)
    spread = np.log(2 * np.pi * max(fit.rss, fit.w @ fit.least) / n)
    jacobian = np.log(fit.X).sum() if _errors.percent(fit.weights) else 0.0
    return float(-n / 2 * (spread + 1) + np.log(fit.w).sum() / 2 - jacobian)


def enough(fit: "Fit") -> int:
    """The number of points from which on a law has an AICc: three more than its estimates."""
    return len(fit.free) + 3


def aicc(fit: "Fit") -> float:
    """Akaike's criterion, corrected for few points; NaN unless there are `enough`, and for one of
    several columns that were fitted together.

    Burnham and Anderson (2002), 7.4, with the variance counted among the parameters. The density
    is that of X whatever the weights, so that fits with different weights can be compared.
    """
    n, k = len(fit.N), len(fit.free) + 1
    if n < enough(fit) or len(fit.whole.N) > n:
        return np.nan
    return -2 * log_likelihood(fit) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


def nested(small: "Fit", large: "Fit") -> float:
    """p value of `small` against `large`, which adds one quantity bounded where `small` has it.

    Half of the time chance alone leaves such a quantity on its bound, so the statistic is zero or
    F with equal weight (Self and Liang 1987, case 5). NaN without points to spare.
    """
    from scipy.special import fdtrc

    if large.dof <= 0 or len(large.free) != len(small.free) + 1:
        return np.nan
    return float(fdtrc(1, large.dof, max(small.rss - large.rss, 0.0) / large.variance) / 2)


def wrong(fit: "Fit") -> str:
    """Why a law is rejected, whatever other laws do: `lack_of_fit` has a p value below 1 %. Nothing
    for a law that is not rejected.
    """
    lack = lack_of_fit(fit)
    if lack is None or lack.p >= WRONG:
        return ""
    return f"it {missed(fit.whole, lack)}"


def table(fits: Mapping[str, "Fit"]) -> "pd.DataFrame":
    """A row for each law: estimates, AICc, its distance to the best, and leave-one-out error."""
    import pandas as pd

    rows = {
        name: {"estimates": len(f.free), "aicc": aicc(f), "loo_rmse": f.loo_rmse}
        for name, f in fits.items()
    }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.insert(2, "behind", frame["aicc"] - frame["aicc"].min())
    return frame


def choose(fits: Mapping[str, "Fit"]) -> tuple[str | None, str]:
    """The law that the data support, and why.

    A law is rejected if it misses the points (`lack_of_fit`, 1 % level), if a law that contains it
    fits significantly better (`nested`, 5 % level), or if it fits no better than a rejected law
    with as many estimates. Of the remaining laws the one with the lowest AICc is chosen, and of
    those within `CLOSE` of it the simplest. None if all are rejected, or if fewer than two of
    several laws have an AICc; and none at a single load.
    """
    if not any(len(np.unique(f.N)) > 1 for f in fits.values()):
        return None, "one load says nothing of how throughput grows"
    missing = {name: misses for name, f in fits.items() if (misses := wrong(f))}
    if len(fits) == 1:
        (name,) = fits
        if name in missing:
            return None, f"{name} is rejected: {missing[name]}"
        return name, "the only law fitted"
    scores = {name: score for name, f in fits.items() if np.isfinite(score := aicc(f))}
    if len(scores) < 2:
        needed = ", ".join(f"{name} needs {enough(f)}" for name, f in fits.items())
        there = max(len(f.N) for f in fits.values())
        return None, f"too few points to compare two laws: {needed}, and there are {there}"
    rejected: dict[str, str] = {}
    pairs = [pair for pair in NESTED if set(pair) <= set(scores)]
    tests = {(small, large): nested(fits[small], fits[large]) for small, large in pairs}
    for (small, large), p in sorted(tests.items(), key=lambda item: item[1]):
        if p < SIGNIFICANT:
            rejected.setdefault(small, f"{large} fits significantly better (p = {p:.2g})")
    rejected = {name: missing[name] for name in missing if name in scores} | rejected
    for name in [name for name in scores if name not in rejected]:
        for other in list(rejected):
            as_many = len(fits[name].free) == len(fits[other].free)
            if as_many and fits[name].rss >= fits[other].rss * (1 - 1e-9):
                rejected.setdefault(name, f"it fits no better than {other}")
    remaining = {name: score for name, score in scores.items() if name not in rejected}
    why = [f"{name} is rejected: {reason}" for name, reason in rejected.items()]
    few = [f"too few points for {name}" for name in fits if name not in scores]
    if not remaining:
        return None, "; ".join([*why, *few])
    best = min(remaining, key=remaining.__getitem__)
    close = [name for name in remaining if remaining[name] <= remaining[best] + CLOSE]
    chosen = min(close, key=lambda name: (len(fits[name].free), remaining[name]))
    rest = " and ".join(name for name in close if name != chosen)
    among = "of the remaining laws " * bool(rejected)
    why.append(
        f"no clear winner: the AICc of {rest} is within {CLOSE:g} of that of {chosen}, the simplest"
        if rest
        else f"{best} has the lowest AICc {among}({remaining[best]:.1f})"
    )
    if (lowest := min(scores, key=scores.__getitem__)) in rejected:
        why.append(
            f"AICc alone would choose {lowest}, as it favours few estimates where points are few"
        )
    loo = {name: error for name in scores if np.isfinite(error := fits[name].loo_rmse)}
    if chosen in loo:
        other = min(loo, key=loo.__getitem__)
        tied = loo[chosen] <= loo[other] * (1 + 1e-6)
        why.append("leave-one-out agrees" if tied else f"leave-one-out prefers {other}")
    return chosen, "; ".join([*why, *few])
