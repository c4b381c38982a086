"""Which columns of a table agree with each other, so that they may be used together."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._closed import contradictions, other_think_time
from nummodel.nomenclature import show
from nummodel.records import columns
from nummodel.records._others import SIZES
from nummodel.records.columns import Points

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
    if columns.ARRIVALS.search(used.x):
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
