"""Words for the stations of `Limits`, and for what was measured of them: how a station is called,
how much of it was in use, which throughput it allows, and what is done to it.
"""

import re
from typing import Any

import numpy as np

from nummodel.nomenclature import show

#: What is done to a station, for a gain by twice as many of its servers and by half its demand.
WORDS = {
    "cpu": ("twice as many processors", "half the processor time of a transaction"),
    "lock": ("splitting the lock in two", "holding the lock half as long"),
}
#: The same of a station that was not measured.
UNMEASURED = {
    "cpu": ("twice as many servers", "half the time a request spends there"),
    "lock": (
        "twice the capacity of what was not measured",
        "half the time spent at what was not measured",
    ),
    "pool": ("a pool of twice as many places", "half the time in the pool"),
}

#: An interval that ends at so many times its estimate, or beyond, has no end that matters.
OPEN = 100.0


def named(found: Any, name: str) -> str:
    """A station in words."""
    if name == "cpu" and is_hidden(found, name):
        return "an unmeasured resource with several servers"
    if name == "cpu":
        return "the processor capacity"
    if re.match(r"(sd|hd|vd|xvd|nvme|mmcblk|dm_|md)\w", name):
        return f"the disk {name}"
    return "what was not measured" if is_hidden(found, name) else f"the {name}"


def words(found: Any, name: str) -> tuple[str, str]:
    """Both changes of a station: twice as many of its servers, and half its demand."""
    if is_hidden(found, name):
        return UNMEASURED["pool" if name == "lock" and is_pool(found) else name]
    station = named(found, name)
    second = f"twice as many servers at {station}"
    if found.servers(name) == 1:
        second = f"a second {name}" if station == f"the {name}" else f"a second disk like {name}"
    return WORDS.get(name, (second, f"half the time at {station} (faster, or used less)"))


def is_hidden(found: Any, name: str) -> bool:
    """Whether a station stands for what was not measured: the lock for whatever one request has at
    a time, and the processors, without their utilisation, for whatever has several places.
    """
    return name in ("lock", "cpu") and f"U_{name}" not in found.study.measured


def is_pool(found: Any) -> bool:
    """Whether what was not measured serves several requests at a time."""
    return "c_lock" in found.fit.free


def in_use(found: Any, name: str) -> float:
    """The measured utilisation of a station at the last load."""
    used = found.study.used
    return float(np.mean(used.others[f"U_{name}"][used.N == used.N.max()]))


def allows(found: Any, name: str, short: bool = False) -> str:
    """The throughput at which a station is full, with its interval if it is one."""
    value, ends = found.full_at(name)
    if not np.isfinite(value):
        return "any load, as it takes hardly any time" if short else "takes hardly any time"
    # Three digits, as more would be below the errors.
    bounded = (x if x < OPEN * value else np.inf for x in (value, *ends))
    most, *between = (float(f"{x:.3g}") if np.isfinite(x) else None for x in bounded)
    level = f"{100 * found.study.level:.15g} % interval: "
    interval = f" ({'' if short else level}{show(between)})" if between[0] != between[1] else ""
    return f"{'' if short else f'allows {found.study.used.y} = '}{show(most)}{interval}"


def at_last(used: Any) -> str:
    return f"at {used.x} = {show(used.N.max())}"
