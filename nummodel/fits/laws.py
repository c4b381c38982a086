"""Several laws fitted to the same points, and what speaks against the law that was chosen."""

from collections.abc import Mapping

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import compare
from nummodel.fits._fit import Fit, fit
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
    """What speaks against the weights or the law that was chosen, or why none was."""
    if not chosen:
        return [f"no law could be chosen: {compare.choose(fits)[1]}"]
    return [
        *_too_few_points(chosen, fits),
        *_for_log_weights(fits[chosen]),
        *_against(chosen, fits),
    ]


def _too_few_points(chosen: str, fits: Mapping[str, Fit]) -> list[str]:
    """A warning, if a law that has too few points to be chosen fits significantly better."""
    sentences = []
    for small, large in compare.NESTED:
        if small == chosen and large in fits and np.isnan(compare.aicc(fits[large])):
            p = compare.nested(fits[small], fits[large])
            if p < compare.SIGNIFICANT:
                n = len(fits[large].N)
                expected = f"{compare.enough(fits[large])} points, and there are {n}"
                sentences.append(
                    f"{large} fits significantly better than {small} (p = {p:.2g}), "
                    f"and was not compared because that takes {expected}"
                )
    return sentences


def _for_log_weights(result: Fit) -> list[str]:
    """A warning, if the same percentage everywhere explains the residuals clearly better."""
    if result.weights != "absolute" or result.rss <= result.w @ result.least:
        return []
    by_percentage = fit(result.law, {"N": result.N, "X": result.X}, "log")
    gain = compare.log_likelihood(by_percentage) - compare.log_likelihood(result)
    if not gain > 2:
        return []
    return [
        "the residuals speak for errors of the same percentage everywhere (log-likelihood higher "
        f"by {gain:.1f}): try --weights log (in a report: -p weights=log)"
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
