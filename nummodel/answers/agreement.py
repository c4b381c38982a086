"""Which columns of a table agree with each other, so that they may be used together."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import FULLEST
from nummodel.fits.closed import TOLERANCE
from nummodel.nomenclature import show
from nummodel.records.columns import SIZES, Points

#: A given think time is doubted by as many standard errors, and by at least this share of it and of
#: the shortest cycle.
SURELY, SMALL = 5.0, 0.02
#: Servers that one user may keep busy: more of them count the work of others.
OTHERS = 1.5


class Agreed(NamedTuple):
    """Points, whose warnings say which column is not used; response times and utilisations; the
    think time and numbers of servers; what a reader must know of them, in sentences; what a closed
    system is fitted to; and the utilisations that probably count the work of other programs.
    """

    used: Points
    measured: dict[str, np.ndarray]
    known: dict[str, float]
    notes: list[str]
    together: dict[str, np.ndarray]
    shared: tuple[str, ...] = ()


def agreed(used: Points, given: dict[str, float]) -> Agreed:
    """The columns that may be used beside loads and throughputs, and what is `given` of the system,
    which replaces what the table says of it.
    """
    measured = {n: v for n, v in used.others.items() if n == "R" or n.startswith("U_")}
    idle = [n for n, v in measured.items() if n.startswith("U_") and not np.any(v > 0)]
    of_system = {n: v for n, v in used.others.items() if n not in measured}
    constant = {n: float(v[0]) for n, v in of_system.items() if (v == v[0]).all()}
    changing = [n for n in of_system if n not in constant and n not in given]
    measured = {n: v for n, v in measured.items() if n not in idle}
    known = constant | given
    notes: list[str] = []
    if used.arrivals:
        notes = [
            f"{used.x} is a rate of arrivals, and no number of users, so N = X (R + Z) is not used",
            "R and Z are not used, as docs/use.md has the laws of open systems for them",
        ]
        # Busy servers are X times a demand whether users or a rate make the load.
        measured = {n: v for n, v in measured.items() if n.startswith("U_")}
        known.pop("Z", None)
    else:
        used, measured, known = _without_odd_ones(used, measured, known)
        if notes := contradictions(used.N, used.X, Z=known.get("Z"), **measured):
            notes.append("R, Z and utilisations are not used, as they contradict other columns")
            measured = {}
            known.pop("Z", None)
    together = {} if notes else measured
    shared = {} if notes else _too_busy(used.N, measured, known)
    notes += [f"{n} is 0 at all loads, and is not used" for n in idle]
    notes += [
        *shared.values(),
        *(f"{n} is not the same in all rows, and is not used" for n in changing),
    ]
    notes = [re.sub(r"\bN = (?=\d)", f"{used.x} = ", note) for note in notes]
    return Agreed(used, measured, known, notes, together, tuple(shared))


def _without_odd_ones(used: Points, measured: dict[str, Any], known: dict[str, float]) -> tuple:
    """The same without a think time, or without response times, that alone contradict the rest."""

    def against(**others: Any) -> list[str]:
        return contradictions(used.N, used.X, **({"Z": known.get("Z")} | measured | others))

    def told(name: str, why: str) -> Points:
        return used._replace(warnings=(*used.warnings, f"{name} is not used: {why}"))

    notes = against()
    if notes and known.get("Z") and not against(Z=None):
        known = {n: v for n, v in known.items() if n != "Z"}
        return told("Z", f"{notes[0]}; without it, the columns agree"), measured, known
    for unit in ("ms", "us") if notes and "R" in measured else ():
        if not against(R=measured["R"] * SIZES[unit]):
            why = f"{notes[0].partition(':')[0]}; it would agree in {unit}: then call it R_{unit}"
            measured = {n: v for n, v in measured.items() if n != "R"}
            return told("R", why), measured, known
    both = not notes and "R" in measured and "Z" in known
    if both and (other := other_think_time(used.N, used.X, measured["R"], known["Z"])):
        known = {n: v for n, v in known.items() if n != "Z"}
        return told("Z", other), measured, known
    return used, measured, known


def _too_busy(
    N: np.ndarray, measured: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, str]:
    """Utilisations by which more servers are busy than users are there, each with a sentence."""
    sentences = {}
    for name, share in measured.items():
        busy = np.asarray(share) * given.get(name.replace("U_", "c_", 1), 0.0)
        worst = int(np.argmax(busy / N))
        if name.startswith("U_") and busy[worst] > OTHERS * N[worst]:
            sentences[name] = (
                f"at N = {show(N[worst])}, {name} says that {show(busy[worst])} servers are busy, "
                f"which is more than a load of {show(N[worst])} should keep busy, so it probably "
                "counts the work of other programs as well"
            )
    return sentences


def contradictions(N, X, R=None, Z=None, **U: Any) -> list[str]:
    """What columns of measurements say of each other that cannot be, in sentences.

    N users, throughput X [1/s], response time R [s], think time Z [s], if it is known, and the
    utilisation of each station as a share. N = X (R + Z) holds for any system in which N users take
    turns to think and to wait, up to the errors of measurement, for which `TOLERANCE` allows.

    >>> [what] = contradictions(N=[10, 20], X=[100.0, 200.0], R=[0.1, 0.2])
    >>> what.partition(":")[0]
    'at N = 20, X R = 40 requests are under way, and 20 users can have 20 at most'
    """
    sentences = []
    for name, share in U.items():
        if np.max(share) > FULLEST:
            highest = f"{name} is up to {np.max(share):g}"
            sentences.append(f"{highest}, expected a share of all servers, at most 1")
    N, X = (np.asarray(v, dtype=float) for v in (N, X))
    if Z is not None and R is None and np.max(X * Z / N) > 1 + TOLERANCE:
        worst = int(np.argmax(X * Z / N))
        sentences.append(
            f"at N = {N[worst]:g}, a think time of {Z:.3g} allows a throughput of "
            f"{N[worst] / Z:.4g} at most, and {X[worst]:.4g} was measured: Z may have another unit"
        )
        return sentences
    if R is None:
        return sentences
    R = np.asarray(R, dtype=float)
    under_way = X * R
    worst = int(np.argmax(under_way / N))
    if under_way[worst] > (1 + TOLERANCE) * N[worst]:
        n = f"{N[worst]:g}"
        return [
            *sentences,
            f"at N = {n}, X R = {under_way[worst]:.4g} requests are under way, and {n} users can "
            f"have {n} at most: R or X may count others as well, or have another unit",
        ]
    thinking = np.maximum(N / X - R, 0.0)
    usual = float(np.median(thinking)) if Z is None else float(Z)
    off = X * (R + usual) / N - 1
    worst = int(np.argmax(np.abs(off)))
    if abs(off[worst]) > TOLERANCE:
        told = "its median over all loads" if Z is None else "as given"
        sentences.append(
            f"at N = {N[worst]:g}, users think for N/X - R = {thinking[worst]:.3g} s, and not for "
            f"{usual:.3g} s ({told}): the number of users may have been less or more than N, or "
            "R and X were not measured at the same time"
        )
    return sentences


def other_think_time(N, X, R, Z: float) -> str:
    """What response times say against a given think time Z, which is smaller than what
    `contradictions` finds: how long users think by N/X - R, if that is surely not Z; else nothing.
    """
    cycle = np.asarray(N, dtype=float) / X
    thinking = cycle - R
    usual = float(np.median(thinking))
    error = SURELY * 1.2533 * 1.4826 * np.median(abs(thinking - usual)) / np.sqrt(len(thinking))
    if len(thinking) < 4 or abs(usual - Z) <= max(error, SMALL * Z, SMALL * np.min(cycle)):
        return ""
    return (
        f"by N/X - R, users think for {usual:.4g} s in the median of all rows, and not for "
        f"{Z:.4g} s (as given)"
    )
