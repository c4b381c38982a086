"""Several laws fitted to the same points, and what speaks against the law that was chosen."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import _adequacy, compare
from nummodel.fits._closed import Face, fit_closed, misses, rival
from nummodel.fits._fit import Fit, fit
from nummodel.models import scaling
from nummodel.nomenclature import show

#: The name of the law that is a closed system.
CLOSED = "closed"
#: A fall is seen if results fall from load to load over as many of the last loads: where the truth
#: stays the same, chance alone puts four in this order once in 24 cases.
FALLING = 4
#: A last result that is lower than the highest by as many standard errors is told.
LOWER = 3.0


def fit_all(
    N: np.ndarray,
    X: np.ndarray,
    weights: str | np.ndarray = "absolute",
    law: str = "all",
    others: Mapping[str, np.ndarray] | None = None,
    **known: float,
) -> tuple[dict[str, Fit], dict[str, str]]:
    """Fits of one law of `scaling.LAWS` or all by name, and why the others were refused.

    With "auto", the law with the most estimates finds the weights for all laws. The law "closed" is
    a closed system, fitted to `others` as well (see `fit_closed`). It is one of all laws if there
    are any others, or if something is `known` of the system, or if no fall is seen where the other
    laws have a peak or are rejected.
    """
    every = [*scaling.LAWS, CLOSED]
    if law not in ("all", *every):
        close = get_close_matches(law, every, 1)
        meant = "".join(f" (did you mean {name}?)" for name in close)
        raise InputError(f"unknown law {law!r}{meant}, expected all or one of: {', '.join(every)}")
    fits: dict[str, Fit] = {}
    refused = {}
    names = {"all": [*scaling.LAWS], CLOSED: []}.get(law, [law])
    lead = np.inf
    for name in sorted(names, key=lambda name: -len(scaling.LAWS[name].quantities)):
        try:
            found = fit(scaling.LAWS[name], {"N": N, "X": X}, weights)
        except InputError as refusal:
            refused[name] = str(refusal)
            continue
        if isinstance(weights, str):
            weights, lead = found.weights, min(lead, found.lead)
        fits[name] = replace(found, lead=lead)
    if law == CLOSED or (law == "all" and (others or known or _open(fits))):
        try:
            fits[CLOSED] = fit_closed(N, X, others or {}, **known)
        except InputError as refusal:
            refused[CLOSED] = str(refusal)
    return {name: fits[name] for name in every if name in fits}, refused


def choose(fits: Mapping[str, Fit]) -> tuple[str | None, str]:
    """The law that the data support, and why.

    It is the closed system if that meets several columns together. Else it is the law that
    `compare.choose` finds, or the closed system, if it has a clearly lower AICc, if all others are
    rejected, or if it is about as likely as a law whose peak is not seen.
    """
    alone = {name: fit for name, fit in fits.items() if name != CLOSED}
    if CLOSED not in fits:
        return compare.choose(alone)
    face: Face = fits[CLOSED]  # type: ignore[assignment]
    missed, columns = misses(face), 1 + len(face.others)
    if not missed and columns > 1:
        held = " whose lock is held while computing" * bool(face.law.system.computes)  # type: ignore[attr-defined]
        return CLOSED, f"a closed system{held} meets {columns} measured columns together"
    chosen, why = compare.choose(alone) if alone else (None, "the only law fitted")
    if chosen:
        lead = compare.aicc(fits[chosen]) - compare.aicc(fits[CLOSED])
        lower = f"a closed system has a lower AICc than {chosen}, by {lead:.1f}"
        if lead > compare.CLOSE and missed:
            return None, f"{CLOSED} is rejected: {missed}; {chosen} is rejected: {lower}"
        if lead > compare.CLOSE:
            return CLOSED, lower
        if lead > -compare.FAR and not missed and _unseen_peak(fits[chosen]):
            other = f"{abs(lead):.1f} {'lower' if lead > 0 else 'higher'} than that of {chosen}"
            return CLOSED, (
                f"{chosen} has a peak, but results do not fall from load to load over the last "
                f"{FALLING}, and the AICc of a closed system, which has a ceiling, is {other}"
            )
    if not missed and not chosen and (not alone or np.isfinite(compare.aicc(fits[CLOSED]))):
        return CLOSED, why
    rejected = f"{CLOSED} is rejected: {missed}" if missed else f"{CLOSED} is no better"
    return chosen, f"{rejected}; {why}" if chosen or missed else why


def _open(fits: Mapping[str, Fit]) -> bool:
    """Whether the law that is chosen has a peak, or all are rejected, although no fall is seen, and
    there are enough points to compare a closed system, which has as many estimates as the USL.
    """
    if "usl" not in fits or np.isnan(compare.aicc(fits["usl"])):
        return False
    chosen = compare.choose(fits)[0]
    if chosen:
        return _unseen_peak(fits[chosen])
    return any(compare.wrong(fit) and not falls(fit) for fit in fits.values())


def _unseen_peak(fit: Fit) -> bool:
    """Whether a law has a peak, and no fall is seen."""
    return fit.peak() is not None and not falls(fit)


def falls(fit: Fit) -> bool:
    """Whether a fall is seen: the mean results fall from load to load over the last loads."""
    last = fit.means[0][-FALLING:]
    return len(last) == FALLING and bool((np.diff(last) < 0).all())


def cautions(
    fits: Mapping[str, Fit], chosen: str | None, run: Any = None, x: str = "", y: str = ""
) -> list[str]:
    """What speaks against the weights or the law that was chosen, or why none was. `run` says of
    which run each point is, where that is known; `x` and `y` are what to call load and result.
    """
    if not chosen:
        return [f"no law could be chosen: {choose(fits)[1]}"]
    if chosen == CLOSED:
        other = rival(fits[CLOSED])  # type: ignore[arg-type]
        found = [*_adequacy.cautions(fits[CLOSED].whole, _of_all(fits[CLOSED], run), x, y)]
        found += _lower(fits[CLOSED])
        return [*found, other] if other else found
    return [
        *_too_few_points(chosen, fits),
        *_adequacy.cautions(fits[chosen], run, x, y),
        *_against(chosen, fits),
    ]


def _of_all(fit: Fit, run: Any) -> np.ndarray | None:
    """The run of each point of all columns; None if that is not known, or if one lacks points."""
    columns = len(fit.whole.N) / len(fit.N)
    return None if run is None or columns % 1 else np.tile(run, int(columns))


def _lower(fit: Fit) -> list[str]:
    """A warning, if the last result is much lower than the highest: this law cannot fall."""
    at_load, weight, _ = fit.means
    top = int(at_load.argmax())
    lower = 1 - at_load[-1] / at_load[top]
    if not lower > LOWER * np.sqrt(fit.variance * (1 / weight[-1] + 1 / weight[top])):
        return []
    last = f"{fit.law.result} is {show(lower, '%')} lower at the last load than at its highest"
    return [f"{last}, and this law cannot fall: measure the last loads again"]


def better(fits: Mapping[str, Fit], chosen: str | None) -> dict[str, float]:
    """Laws that fit significantly better than the chosen one, but have too few points to be chosen,
    and the p of each.
    """
    large = [large for small, large in compare.NESTED if small == chosen and large in fits]
    few = [name for name in large if np.isnan(compare.aicc(fits[name]))]
    found = {name: compare.nested(fits[chosen or ""], fits[name]) for name in few}
    return {name: p for name, p in found.items() if p < compare.SIGNIFICANT}


def _too_few_points(chosen: str, fits: Mapping[str, Fit]) -> list[str]:
    """Warnings of laws that have too few points to be chosen."""
    return [
        f"{name} fits significantly better than {chosen} (p = {p:.2g}), but cannot be chosen, as a "
        f"comparison takes {compare.enough(fits[name])} points, and there are {len(fits[name].N)}"
        for name, p in better(fits, chosen).items()
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
