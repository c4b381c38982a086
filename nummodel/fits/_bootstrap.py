"""Bootstrap: estimates from resampled measurements, all resamples in one call."""

from typing import TYPE_CHECKING

import numpy as np

from nummodel.fits._fit import Fit, refit

if TYPE_CHECKING:
    import pandas as pd


def bootstrap(
    fit: Fit, kind: str = "parametric", count: int = 2000, seed: int = 0
) -> "pd.DataFrame":
    """Estimates from `count` resamples, a row each.

    `kind` is where a resample comes from (Davison and Hinkley 1997, chapter 6):

    - "parametric": the curve, with normal errors of the estimated size (log-normal for log);
    - "residual": the curve, with the residuals drawn again, which have their mean removed and are
      made as large as errors are;
    - "pairs": the measurements drawn again, whole rows; draws with too few different loads for the
      law are drawn anew.

    Raises ValueError for another kind, and for a fit without points to spare.
    """
    import pandas as pd

    if fit.dof <= 0:
        raise ValueError(
            f"bootstrap: {len(fit.N)} points for {len(fit.free)} estimates, none spare"
        )
    draw = {"parametric": _parametric, "residual": _residual, "pairs": _pairs}.get(kind)
    if draw is None:
        raise ValueError(f"bootstrap kind {kind!r}, expected parametric, residual or pairs")
    X, times = draw(fit, count, np.random.default_rng(seed))
    return pd.DataFrame(refit(fit, X, times), columns=list(fit.free))


def _parametric(fit: Fit, count: int, random: np.random.Generator):
    return _moved(fit, np.sqrt(fit.variance) * random.standard_normal((count, len(fit.N))))


def _residual(fit: Fit, count: int, random: np.random.Generator):
    residual = fit.errors / _size(fit)
    residual = (residual - residual.mean()) * np.sqrt(len(fit.N) / fit.dof)
    return _moved(fit, random.choice(residual, (count, len(fit.N))))


def _pairs(fit: Fit, count: int, random: np.random.Generator):
    drawn = np.empty((0, len(fit.N)), dtype=int)
    while len(drawn) < count:
        more = random.integers(len(fit.N), size=(count, len(fit.N)))
        different = np.array([len(np.unique(fit.N[row])) for row in more])
        drawn = np.concatenate([drawn, more[different >= len(fit.free)]])[:count]
    times = np.apply_along_axis(np.bincount, 1, drawn, minlength=len(fit.N))
    return np.broadcast_to(fit.X, times.shape), times


def _moved(fit: Fit, error: np.ndarray):
    """The curve with errors of the size that each point's weight gives them."""
    curve = fit.at(fit.N)
    error = error * _size(fit)
    X = curve * np.exp(error) if fit.log else curve + error
    if fit.weights == "relative" and not (X > 0).all():
        raise ValueError("bootstrap: errors this large make X negative; log weights do not")
    return X, 1.0


def _size(fit: Fit) -> np.ndarray:
    """The error of each point, or of its logarithm, relative to one of weight 1."""
    return fit.times**-0.5 * (fit.at(fit.N) if fit.weights == "relative" else 1.0)
