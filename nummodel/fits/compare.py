"""Which law do the data speak for? Criteria, a test for nested laws, and a choice in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from nummodel.fits._fit import Fit

#: Laws that another contains, at a bound of the one quantity that it adds.
NESTED = (("linear", "amdahl"), ("linear", "gustafson"), ("amdahl", "usl"))

#: Distance in AICc below which neither law has won (Burnham and Anderson 2002, 2.6).
CLOSE = 2.0
#: A law goes if one that contains it has a p value (`nested`) below this.
SIGNIFICANT = 0.05


def log_likelihood(fit: "Fit") -> float:
    """Of errors that are normal, or log-normal if logarithms were fitted, at its maximum.

    Errors smaller than the rounding of X, or of a float, count as that: points that a law meets
    exactly do not make it infinitely better than another law that meets them.
    """
    n = len(fit.N)
    half = fit.half / fit.X if fit.log else fit.half
    size = np.log(fit.X) if fit.log else fit.X
    floor = fit.w @ np.maximum(half**2 / 3, (size * 2.0**-48) ** 2)
    spread = np.log(2 * np.pi * max(fit.rss, floor) / n)
    jacobian = np.log(fit.X).sum() if fit.log else 0.0
    return float(-n / 2 * (spread + 1) + np.log(fit.w).sum() / 2 - jacobian)


def aicc(fit: "Fit") -> float:
    """Akaike's criterion, corrected for few points; NaN unless n > p + 2.

    Burnham and Anderson (2002), 7.4, with the variance counted among the parameters. The density
    is that of X whatever the weights, so that fits with different weights can be compared.
    """
    n, k = len(fit.N), len(fit.free) + 1
    if n <= k + 1:
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
    """The law that the data speak for, and why.

    A law goes if one that contains it fits significantly better (`nested`, 5 % level), or if it
    fits no better than one that went, with as many estimates. Of those left the lowest AICc is
    taken, and of those within `CLOSE` of it the simplest. None if fewer than two laws can be
    scored: they need three points more than they have estimates; and none at a single load.
    """
    if not any(len(np.unique(f.N)) > 1 for f in fits.values()):
        return None, "one load says nothing of how throughput grows"
    if len(fits) == 1:
        return next(iter(fits)), "the only law fitted"
    scores = {name: score for name, f in fits.items() if np.isfinite(score := aicc(f))}
    if len(scores) < 2:
        return (
            None,
            "too few points to compare laws: AICc needs three more than a law has estimates",
        )
    gone: dict[str, str] = {}
    pairs = [pair for pair in NESTED if set(pair) <= set(scores)]
    tests = {pair: nested(fits[pair[0]], fits[pair[1]]) for pair in pairs}
    for (small, large), p in sorted(tests.items(), key=lambda item: item[1]):
        if p < SIGNIFICANT:
            gone.setdefault(small, f"{small} goes: {large} fits better (p = {p:.2g})")
    for name in set(scores) - set(gone):
        for worse in gone.keys() & scores.keys():
            same_size = len(fits[name].free) == len(fits[worse].free)
            if same_size and fits[name].rss >= fits[worse].rss * (1 - 1e-9):
                gone.setdefault(name, f"{name} fits no better than {worse}")
                break
    left = {name: score for name, score in scores.items() if name not in gone}
    best = min(left, key=left.__getitem__)
    close = [name for name in left if left[name] <= left[best] + CLOSE]
    chosen = min(close, key=lambda name: (len(fits[name].free), left[name]))
    why = [*gone.values(), f"AICc {left[best]:.1f} of {best} is the lowest" + " left" * bool(gone)]
    if len(close) > 1:
        rest = " and ".join(name for name in close if name != chosen)
        why[-1] = f"no clear winner: {rest} within {CLOSE:g} in AICc of {chosen}, the simplest"
    if (cheap := min(scores, key=scores.__getitem__)) in gone:
        why.append(f"AICc alone would take {cheap}: it charges few points dearly for an estimate")
    loo = {name: fits[name].loo_rmse for name in scores if np.isfinite(fits[name].loo_rmse)}
    if chosen in loo:
        other = min(loo, key=loo.__getitem__)
        tied = loo[chosen] <= loo[other] * (1 + 1e-6)
        why.append("leave-one-out agrees" if tied else f"leave-one-out prefers {other}")
    why += [f"too few points for {name}" for name in fits if name not in scores]
    return chosen, "; ".join(why)
