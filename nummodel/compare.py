"""Which law do the data speak for? Criteria, a test for nested laws, and a choice in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from nummodel.fit import Fit

#: Distance in AICc below which neither law has won (Burnham and Anderson 2002, 2.6).
CLOSE = 2.0


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
    from scipy.stats import f

    if large.dof <= 0 or len(large.free) != len(small.free) + 1:
        return np.nan
    return float(f.sf(max(small.rss - large.rss, 0.0) / large.variance, 1, large.dof) / 2)


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
    """The law that the data speak for by AICc, and why; the simplest of those that are close.

    None if fewer than two laws can be scored: they need three points more than they have estimates.
    """
    if len(fits) == 1:
        return next(iter(fits)), "the only law fitted"
    scores = {name: aicc(f) for name, f in fits.items()}
    scores = {name: score for name, score in scores.items() if np.isfinite(score)}
    if len(scores) < 2:
        return (
            None,
            "too few points to compare laws: AICc needs three more than a law has estimates",
        )
    best = min(scores, key=scores.__getitem__)
    close = [name for name in scores if scores[name] <= scores[best] + CLOSE]
    chosen = min(close, key=lambda name: (len(fits[name].free), scores[name]))
    why = f"AICc {scores[chosen]:.1f} is the lowest"
    if len(close) > 1:
        rest = [name for name in close if name != chosen]
        why = (
            f"no clear winner: {' and '.join(rest)} within {CLOSE:g} in AICc; the simplest is taken"
        )
    loo = {name: fits[name].loo_rmse for name in scores if np.isfinite(fits[name].loo_rmse)}
    if loo:
        other = min(loo, key=loo.__getitem__)
        tied = loo.get(chosen, np.inf) <= loo[other] * (1 + 1e-6)
        agrees = "agrees" if tied else f"prefers {other}"
        why += f"; leave-one-out {agrees}"
    unscored = [name for name in fits if name not in scores]
    return chosen, why + (f"; too few points for {', '.join(unscored)}" if unscored else "")
