"""Bootstrap: estimates from resampled measurements, all resamples in one call."""

from typing import TYPE_CHECKING, Any

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
    - "residual": the curve, with residuals drawn from those of the fit, less their mean and
      enlarged to the size of errors;
    - "pairs": whole measurements, drawn from those of the fit. A draw with fewer different loads
      than estimates is repeated.

    Raises ValueError for another kind, and for a fit without points to spare.
    """
    import pandas as pd

    fit = fit.whole
    if fit.dof <= 0:
        n = len(fit.N)
        raise ValueError(f"bootstrap: {n} points for {len(fit.free)} estimates, none spare")
    return pd.DataFrame(refit(fit, *resamples(fit, kind, count, seed)), columns=list(fit.free))


def resamples(fit: Fit, kind: str, count: int, seed: int) -> tuple[np.ndarray, Any]:
    """Results of `count` resamples, a row each, and how often each measurement counts."""
    random, shape = np.random.default_rng(seed), (count, len(fit.N))
    if kind == "pairs":
        drawn = np.empty((0, len(fit.N)), dtype=int)
        while len(drawn) < count:
            more = random.integers(len(fit.N), size=shape)
            different = np.array([len(np.unique(fit.setting[row])) for row in more])
            drawn = np.concatenate([drawn, more[different >= len(fit.free)]])[:count]
        times = np.apply_along_axis(np.bincount, 1, drawn, minlength=len(fit.N))
        return np.broadcast_to(fit.X, shape), times
    curve = fit.at(fit.N)
    size = fit.w**-0.5 * (curve if fit.weights == "relative" else 1.0)  # of each error
    if kind == "parametric":
        error = np.sqrt(fit.variance) * random.standard_normal(shape) * size
    elif kind == "residual":
        residual = (np.log(fit.X / curve) if fit.weights == "log" else fit.residuals) / size
        residual = (residual - residual.mean()) * np.sqrt(len(fit.N) / fit.dof)
        error = random.choice(residual, shape) * size
    else:
        raise ValueError(f"bootstrap kind {kind!r}, expected parametric, residual or pairs")
    X = curve * np.exp(error) if fit.weights == "log" else curve + error
    if fit.weights == "relative" and not (X > 0).all():
        raise ValueError("bootstrap: errors this large make X negative; log weights do not")
    return X, 1.0
