"""Several laws fitted to the same points, and what speaks against the law that was chosen."""

from collections.abc import Mapping

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import compare
from nummodel.fits._fit import Fit, fit
from nummodel.fits._problem import rounding
from nummodel.models import scaling


def fit_all(
    N: np.ndarray, X: np.ndarray, weights: str | np.ndarray = "absolute", law: str = "all"
) -> tuple[dict[str, Fit], dict[str, str]]:
    """Fits of one law of `scaling.LAWS` or all by name, and why the others were refused."""
    if law != "all" and law not in scaling.LAWS:
        raise InputError(f"unknown law {law!r}, expected all or one of: {', '.join(scaling.LAWS)}")
    fits, refused = {}, {}
    for name in scaling.LAWS if law == "all" else [law]:
        try:
            fits[name] = fit(scaling.LAWS[name], {"N": N, "X": X}, weights)
        except InputError as refusal:
            refused[name] = str(refusal)
    return fits, refused


def cautions(fits: Mapping[str, Fit], chosen: str | None) -> list[str]:
    """What speaks against the weights, or against the law that was chosen."""
    return [*_for_relative_weights(fits[chosen]), *_against(chosen, fits)] if chosen else []


def _for_relative_weights(result: Fit) -> list[str]:
    """A warning, if the same percentage everywhere explains the residuals clearly better."""
    if result.weights != "absolute" or result.rss <= rounding(result.X, result.w, log=False):
        return []
    relative = fit(result.law, {"N": result.N, "X": result.X}, "relative")
    gain = compare.log_likelihood(relative) - compare.log_likelihood(result)
    if not gain > 2:
        return []
    return [
        "the residuals speak for relative weights (the same percentage everywhere): log-likelihood "
        f"higher by {gain:.1f}; try --weights relative, in a report -p weights=relative"
    ]


def _against(chosen: str, fits: Mapping[str, Fit]) -> list[str]:
    """A warning, if another law predicts left-out points much better than the chosen one."""
    errors = {name: f.loo_rmse for name, f in fits.items() if np.isfinite(f.loo_rmse)}
    best = min(errors, key=errors.__getitem__, default=chosen)
    noise = 1e-9 * fits[chosen].X.mean()
    if chosen not in errors or errors[chosen] <= 2 * errors[best] + noise:
        return []
    ratio = errors[chosen] / max(errors[best], noise)
    return [f"{best} predicts points that are left out {ratio:.1f} times better than {chosen}"]
