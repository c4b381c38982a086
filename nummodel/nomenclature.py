"""Every quantity of every formula, named once.

Symbols, axis labels, parameter tables, slider labels and the range that a fit searches are read
from here; a formula with an argument that is not listed cannot be imported.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple


class Quantity(NamedTuple):
    """The meaning of a name; values from `low` to `high` make sense."""

    latex: str
    unit: str
    meaning: str
    low: float = 0.0
    high: float = inf


QUANTITIES = {
    # load and result
    "N": Quantity("N", "-", "population: processors, threads or clients"),
    "X": Quantity("X", "1/s", "throughput"),
    "X1": Quantity("X_1", "1/s", "throughput at N = 1"),
    "X_full": Quantity(r"X_\mathrm{full}", "1/s", "throughput at full utilisation (ITR)"),
    "C": Quantity("C", "-", "relative capacity: throughput over throughput at N = 1"),
    "R": Quantity("R", "s", "response time, waiting included"),
    "Q": Quantity("Q", "-", "mean number present"),
    "D": Quantity("D", "s", "service demand of one transaction"),
    "D0": Quantity("D_0", "s", "demand of a transaction that nobody delays"),
    "D_max": Quantity(r"D_\mathrm{max}", "s", "largest demand of a station, per server"),
    "D_mean": Quantity(r"D_\mathrm{mean}", "s", "mean demand of a station"),
    "Z": Quantity("Z", "s", "think time between transactions"),
    "N_sat": Quantity(r"N^*", "-", "population at which the bottleneck would be full"),
    "rho": Quantity(r"\rho", "-", "utilisation of each server", 0.0, 1.0),
    "c": Quantity("c", "-", "number of servers", 1.0),
    # stations
    "lamda": Quantity(r"\lambda", "1/s", "arrival rate"),
    "S": Quantity("S", "s", "service time, mean"),
    "W": Quantity("W", "s", "waiting time, mean"),
    "W_mmc": Quantity(r"W_{\mathrm{M/M/}c}", "s", "waiting time of M/M/c"),
    "K": Quantity("K", "-", "capacity: places, those in service included", 1.0),
    "a": Quantity("a", "-", "offered load: servers kept busy if none is turned away"),
    "level": Quantity("level", "-", "share of the intervals that hold the truth", 0.0, 1.0),
    "p": Quantity("p", "-", "probability, share of the customers", 0.0, 1.0),
    "cv2": Quantity("c_s^2", "-", "squared coefficient of variation of service"),
    "cv2_a": Quantity("c_a^2", "-", "squared coefficient of variation between arrivals"),
    "cv2_v": Quantity("c_v^2", "-", "squared coefficient of variation of times away"),
    # locks
    "n": Quantity("n", "-", "threads at a lock, the holder included", 1.0),
    "h": Quantity("h", "s", "hand-over between processors of one node"),
    "h_remote": Quantity(r"h_\mathrm{remote}", "s", "hand-over between processors of two nodes"),
    "h_waiter": Quantity(r"h_\mathrm{waiter}", "s", "what each waiter adds to a hand-over"),
    "nodes": Quantity("q", "-", "nodes over which the threads are spread", 1.0),
    "wake": Quantity(r"t_\mathrm{wake}", "s", "from waking a thread to its running"),
    "patience": Quantity(r"t_\mathrm{spin}", "s", "how long a waiter spins before it sleeps"),
    "update": Quantity("u", "s", "one addition to a counter in the own cache"),
    "batch": Quantity("b", "-", "hand-overs in a row inside a node, at most", 1.0),
    "m": Quantity("m", "-", "locks into which one is split", 1.0),
    "share": Quantity(r"Q/N", "-", "share of the threads at the locks", 0.0, 1.0),
    "w": Quantity("w", "-", "share of exclusive use", 0.0, 1.0),
    "on": Quantity(r"t_\mathrm{on}", "s", "time that a holder keeps its processor, mean"),
    "away": Quantity(r"t_\mathrm{away}", "s", "time that a preempted holder is away, mean"),
    "v": Quantity("v", "-", "requests for the lock of a transaction"),
    "nu": Quantity(r"\nu", "1/s", "how often a running processor is taken away"),
    "g": Quantity("g", "-", "processor time lost for each second of it that is spun"),
    "spin": Quantity("Q_w/N", "-", "share of the processors that spin", 0.0, 1.0),
    # nodes and the I/O path
    "f_remote": Quantity(r"f_\mathrm{remote}", "-", "share that goes to another node", 0.0, 1.0),
    "t_local": Quantity(r"t_\mathrm{local}", "s", "access or copy inside a node"),
    "t_remote": Quantity(r"t_\mathrm{remote}", "s", "access or copy across nodes"),
    "r": Quantity("r", "-", "share of the requests for read-only data", 0.0, 1.0),
    "held": Quantity("h_c", "-", "share of a copy made under the driver's lock", 0.0, 1.0),
    # memory
    "B": Quantity("B", "B/s", "bandwidth in use"),
    "B_max": Quantity(r"B_\mathrm{max}", "B/s", "bandwidth of a full memory"),
    "R0": Quantity("R_0", "s", "latency of an idle memory"),
    "t_row": Quantity(r"t_\mathrm{row}", "s", "what full traffic adds to a read, without queueing"),
    "channels": Quantity("m", "-", "memory channels: queues at which reads wait", 1.0),
    "lines": Quantity("n", "-", "cache lines under way, at most", 1.0),
    "cold": Quantity("x", "-", "what a colder cache adds to service, as a share of it"),
    # scaling laws
    "sigma": Quantity(r"\sigma", "-", "contention: serial fraction of the work", 0.0, 1.0),
    "kappa": Quantity(r"\kappa", "-", "coherency: cost of pairwise exchange"),
    "N_opt": Quantity(r"N_\mathrm{opt}", "-", "population of the highest throughput", 1.0),
    "root": Quantity(r"\sqrt{\theta}", "-", "square root of a quantity that makes a peak"),
    "N0": Quantity("N_0", "-", "population at which the curve is asked for"),
    "X0": Quantity("X_0", "1/s", "height of the curve there"),
    "y": Quantity("y", "-", "result of one of several laws"),
    "part": Quantity("j", "-", "which of several laws a measurement belongs to", 1.0),
    "X_min": Quantity(r"X_\mathrm{min}", "1/s", "lower bound of the throughput"),
    "X_max": Quantity(r"X_\mathrm{max}", "1/s", "highest throughput at any N >= 1"),
}


#: Quantities that must lie inside their range, not at an end of it.
OPEN = ("level",)


def quantity(name: str) -> Quantity:
    """The quantity called `name`. Raises NameError for an unknown one, and says how to add it."""
    try:
        return QUANTITIES[name]
    except KeyError:
        raise NameError(
            f"unknown quantity {name!r}: add its symbol, unit and meaning to nomenclature.py"
        ) from None


def known(name: str) -> str:
    """The quantity that a user's own name stands for, by its first part; "" if there is none.

    >>> known("D_max"), known("D_disk"), known("colour")
    ('D_max', 'D', '')
    """
    return next((n for n in (name, name.partition("_")[0]) if n in QUANTITIES), "")


def in_range(name: str, value: float) -> bool:
    """Whether a value of a quantity makes sense.

    >>> in_range("rho", 1), in_range("level", 1), in_range("level", 0.95)
    (True, False, True)
    """
    low, high = quantity(name)[3:]
    return low < value < high if name in OPEN else low <= value <= high


def range_of(name: str) -> str:
    """The range of a quantity in words that follow "expected a number".

    >>> range_of("rho"), range_of("c"), range_of("level")
    (' of at least 0 and at most 1', ' of at least 1', ' above 0 and below 1')
    """
    low, high = quantity(name)[3:]
    if name in OPEN:
        return f" above {low:g} and below {high:g}"
    return f" of at least {low:g}" + (f" and at most {high:g}" if high < inf else "")


def label(name: str, own: Quantity | None = None) -> str:
    """Axis or slider label: meaning, symbol and unit; of the nomenclature, or its own.

    >>> print(label("R"))
    response time, waiting included $R$ [s]
    """
    latex, unit, meaning, *_ = own or quantity(name)
    return f"{meaning} ${latex}$".strip() + (f" [{unit}]" if unit != "-" else "")


#: Units in which a person writes seconds, the largest first.
SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def show(value: Any, unit: str = "") -> str:
    """A value as a person would write it. A share with the unit "%" becomes a percentage, and
    seconds become milliseconds and so on; any other unit follows the figure.

    >>> show(0.0257137), show(15819.2), show([15000, None]), show(True)
    ('0.02571', '15,819', '15,000 or more', 'true')
    >>> show(0.008903, "%"), show(0.006202, "s"), show(10319.5, "1/s"), show([2e-8, 3e-8], "s")
    ('0.89 %', '6.202 ms', '10,320/s', '20 to 30 ns')
    """
    if isinstance(value, bool) or value is None:
        return "none" if value is None else str(value).lower()
    ends = value if isinstance(value, (list, tuple)) else [value]
    if len(ends) > 2 or not all(end is None or isinstance(end, (int, float)) for end in ends):
        return str(value)
    return _interval(ends, unit)


def _interval(ends: Sequence[float | None], unit: str) -> str:
    """A number, or the ends of an interval, one of which may not exist."""
    sizes = [abs(end) for end in ends if end is not None]
    if not sizes:
        return "no interval"
    factor, after = _in_words(unit, max(sizes))
    digits = 3 if unit == "%" else 4
    figures = [None if end is None else _figure(end * factor, digits) for end in ends]
    if None in figures:
        return f"{figures[0]}{after} or more" if figures[0] else f"{figures[1]}{after} or less"
    return " to ".join(map(str, figures)) + after


def _in_words(unit: str, size: float) -> tuple[float, str]:
    """What a value of this size is multiplied by, and what follows the figure."""
    if unit == "%":
        return 100, " %"
    if unit == "s":
        name, one = next(((n, s) for n, s in SECONDS.items() if size >= s), ("s", 1.0))
        return 1 / one, f" {name}"
    return 1, unit[1:] if unit.startswith("1/") else f" {unit}" if unit else ""


def _figure(value: float, digits: int) -> str:
    if isinstance(value, int) or 1e4 <= abs(value) < 1e9:
        return f"{value:,.0f}" if abs(value) >= 1e4 else str(value)
    return f"{value:.{digits}g}"
