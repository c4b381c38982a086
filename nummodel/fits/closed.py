"""A closed system fitted to everything that was measured of it, beside laws of X alone."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from nummodel.errors import InputError
from nummodel.fits import laws
from nummodel.fits._estimates import Fit
from nummodel.fits._fit import fit
from nummodel.models import scaling, systems
from nummodel.models.systems import Measured, System
from nummodel.nomenclature import show

#: The name of the law that is a closed system.
CLOSED = "closed"
#: The level of the intervals by which it is told what limits.
LEVEL = 0.95
#: A utilisation that is off by no more rejects no system: other programs use processors, too.
SHARE = 0.02
#: How far columns may be from the operational laws, or from a system, by errors of measurement.
TOLERANCE = 0.2
#: A fall is seen if results fall from load to load over as many of the last loads: where the truth
#: stays the same, chance alone puts four in this order once in 24 cases.
FALLING = 4


def system(found: Fit) -> System:
    """The stations of a fitted closed system. Raises ValueError for another law."""
    if not isinstance(found.law, Measured):
        raise ValueError(f"{found.law.__name__} is no closed system")
    return found.law.system


def times(found: Fit, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The work of each station, per server [s]: the reciprocal of the most it can do. Of these
    `values` of the law, or else of those that were estimated.
    """
    return system(found).times(values or found.values)


def fit_closed(N: np.ndarray, X: np.ndarray, others: Mapping[str, np.ndarray], **known: Any) -> Fit:
    """Fit a closed system to throughputs at numbers of users, and to `others`: response times R [s]
    and utilisations U_name of stations, as far as they were measured.

    The system has a lock, which has one server, and a station for each other utilisation, or
    without any a station called cpu. The number of servers of cpu is found if c_cpu is not `known`,
    and so is the think time Z. Another station with a utilisation is a device, and has one server
    if nothing else is known; if the measurements reject that, the servers of an only device are
    found. Throughputs alone do not tell one station from another: if no number of servers is known
    either, there is one station, called bottleneck. Raises InputError for measurements that are too
    few or make no sense.
    """
    devices = [n[2:] for n in others if n.startswith("U_") and n not in ("U_cpu", "U_lock")]
    single = {f"c_{n}": 1 for n in devices if f"c_{n}" not in known}
    found = _with_lock(N, X, others, {**known, **single})
    told = "U_cpu" not in others or "c_cpu" in known
    if len(single) != 1 or not told or not (misses(found) or "c_lock" in found.free):
        return found
    several = _with_lock(N, X, others, {**known, next(iter(single)): None})
    likelier = laws.log_likelihood(several) > laws.log_likelihood(found)
    if misses(several) or "c_lock" in several.free or not (misses(found) or likelier):
        return found
    return several


def _with_lock(
    N: np.ndarray, X: np.ndarray, others: Mapping[str, np.ndarray], known: Mapping[str, Any]
) -> Fit:
    """As `fit_closed`, of devices whose servers are known, or to be found.

    If the lock was not measured, its holder may compute: the utilisation of the processors, cpu,
    then counts the time under the lock as well. This tells if the number of processors is known.
    The result is such a system, if it alone is not rejected (`misses`) or is much the likelier one.
    If both are rejected, what was not measured may be no lock but a pool of several places.
    """
    found = _fitted(N, X, others, known)
    told = "U_cpu" in others and "c_cpu" in known
    if not told or {"U_lock", "c_lock"} & {*others, *known} or found.dof <= 0:
        return found
    computing = _fitted(N, X, others, known, computes="lock")
    if not misses(computing):
        more = laws.log_likelihood(computing) - laws.log_likelihood(found)
        found = computing if misses(found) or 2 * more >= laws.FAR else found
    given = all(known.get(f"c_{n[2:]}") for n in others if n.startswith("U_"))
    if not given or found.dof <= 1 or not misses(found):
        return found
    several = _fitted(N, X, others, {**known, "c_lock": None})
    low, high = several.interval("c_lock", LEVEL)
    pool = max(2.0, np.ceil(low)) <= high < np.inf  # so many places; with any number, it is none
    return several if pool and not misses(several) else found


def _fitted(
    N: np.ndarray,
    X: np.ndarray,
    others: Mapping[str, np.ndarray],
    known: Mapping[str, Any],
    computes: str = "",
) -> Fit:
    """As `fit_closed`, of one system: that whose station `computes` holds a processor as well, or
    that without such a station.
    """
    servers = _servers(others, known, computes)
    unknown = [f"c_{n}" for n, c in servers.items() if c is None]
    if len(unknown) > 1:
        told = f"{len(unknown)} unknown numbers of servers ({', '.join(unknown)})"
        raise InputError(f"{told}, expected one at most: give others, as in --known {unknown[0]}=4")
    rest = {n: v for n, v in known.items() if not n.startswith("c_")}
    try:
        of_system = systems.closed(computes=computes, **servers)
        columns = {"X": X, **{n: v for n, v in others.items() if n in of_system}}
        halves = {n: _rounding(v) for n, v in columns.items()}
        found = fit(of_system, {"N": N, **columns}, resolution=halves, **rest)
    except ValueError as wrong:
        raise InputError(str(wrong)) from None
    slack = [SHARE if n.startswith("U_") else 0.0 for n in found.results]
    parts = tuple(c._replace(slack=s) for c, s in zip(found.columns, slack, strict=True))
    return replace(found, problem=found.problem._replace(columns=parts))


def _servers(others: Mapping[str, Any], known: Mapping[str, Any], computes: str) -> dict[str, Any]:
    """The stations of a system, and the numbers of their servers, None for one to be found."""
    told = [n for n in known if n.startswith("c_")]
    if not others and not told:
        return {"bottleneck": None}
    names = [n[2:] for n in (*others, *told) if n.startswith(("U_", "c_"))]
    names = [n for n in dict.fromkeys(["cpu"] * bool(computes) + names) if n != "lock"] or ["cpu"]
    return {n: known.get(f"c_{n}") for n in names} | {"lock": known.get("c_lock", 1)}


def _rounding(values: np.ndarray) -> float:
    """Half of the last decimal that is in use."""
    for decimals in range(12):
        if np.allclose(values, np.round(values, decimals), rtol=1e-12, atol=0):
            return 0.5 * 10.0**-decimals
    return 0.0


def misses(found: Fit) -> str:
    """Why a closed system is rejected; nothing for one that is not.

    A test rejects it (`laws.wrong`), or it is farther from a column than `TOLERANCE`, at the last
    load or at half of all loads; from a utilisation, in units of the highest one. A few points
    cannot prove that this is no chance, but such a system does not describe what was measured.
    """
    if rejected := laws.wrong(found):
        return rejected
    for place, c in enumerate(found.columns):
        name, model = found.results[place], found.at(c.N, place)
        share = name.startswith("U_")
        off = abs(c.X - model) / (c.X.max() if share else np.minimum(c.X, model))
        last, usual = off[c.N == c.N.max()].mean(), np.median(off)
        if max(last, usual) > TOLERANCE:
            where = f"at N = {show(c.N.max())}" if last > usual else "in the median"
            missed = f"it misses {name} by {show(float(f'{max(last, usual):.2g}'), '%')} {where}"
            return f"{missed}, in units of the highest {name}" if share else missed
    return ""


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
    `laws.choose` finds, or the closed system, if it has a clearly lower AICc, if all others are
    rejected, or if it is about as likely as a law whose peak is not seen.
    """
    alone = {name: fit for name, fit in fits.items() if name != CLOSED}
    if CLOSED not in fits:
        return laws.choose(alone)
    found = fits[CLOSED]
    missed, columns = misses(found), len(found.columns)
    if not missed and columns > 1:
        held = " whose lock is held while computing" * bool(system(found).computes)
        return CLOSED, f"a closed system{held} meets {columns} measured columns together"
    if not alone:
        why = "the only law fitted"
        return (None, f"{CLOSED} is rejected: {missed}; {why}") if missed else (CLOSED, why)
    chosen, why = laws.choose(alone)
    if chosen:
        return _beside(found, missed, fits[chosen], chosen, why)
    if missed:
        return None, f"{CLOSED} is rejected: {missed}; {why}"
    return (CLOSED if np.isfinite(laws.aicc(found)) else None), why


def _beside(found: Fit, missed: str, other: Fit, chosen: str, why: str) -> tuple[str | None, str]:
    """As `choose`, of a closed system, which may be rejected, and the law chosen of the others."""
    lead = laws.aicc(other) - laws.aicc(found)
    lower = f"a closed system has a lower AICc than {chosen}, by {lead:.1f}"
    if missed and lead > laws.CLOSE:
        return None, f"{CLOSED} is rejected: {missed}; {chosen} is rejected: {lower}"
    if missed:
        return chosen, f"{CLOSED} is rejected: {missed}; {why}"
    if lead > laws.CLOSE:
        return CLOSED, lower
    if lead > -laws.FAR and _unseen_peak(other):
        return CLOSED, _level(chosen, lead)
    return chosen, f"{CLOSED} is no better; {why}"


def _level(chosen: str, lead: float) -> str:
    """Why a closed system is chosen that is about as likely as a law whose peak is not seen."""
    other = f"{abs(lead):.1f} {'lower' if lead > 0 else 'higher'} than that of {chosen}"
    return (
        f"{chosen} has a peak, but results do not fall from load to load over the last {FALLING}, "
        f"and the AICc of a closed system, which has a ceiling, is {other}"
    )


def _open(fits: Mapping[str, Fit]) -> bool:
    """Whether the law that is chosen has a peak, or all are rejected, although no fall is seen, and
    there are enough points to compare a closed system, which has as many estimates as the USL.
    """
    if "usl" not in fits or np.isnan(laws.aicc(fits["usl"])):
        return False
    chosen = laws.choose(fits)[0]
    if chosen:
        return _unseen_peak(fits[chosen])
    return any(laws.wrong(fit) and not falls(fit) for fit in fits.values())


def _unseen_peak(fit: Fit) -> bool:
    """Whether a law has a peak, and no fall is seen."""
    return fit.peak() is not None and not falls(fit)


def falls(fit: Fit) -> bool:
    """Whether a fall is seen: the mean results fall from load to load over the last loads."""
    last = fit.means[0][-FALLING:]
    return len(last) == FALLING and bool((np.diff(last) < 0).all())
