"""What a column holds, by the list of names in columns.csv. Nothing else is guessed."""

import csv
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

#: Units of times, in seconds, of shares, and of what happens in a time, per second.
SIZES = dict.fromkeys("s sec secs second seconds".split(), 1.0)
SIZES |= {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "μs": 1e-6, "µs": 1e-6, "usec": 1e-6, "ns": 1e-9}
LONGER = {"min": 60.0, "minute": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0}
RATES = {f"/{unit}": 1 / size for unit, size in (SIZES | LONGER).items()}
SHARES = {"%", "pct", "perc", "percent"}
#: Throughputs that are not those of a second.
SCALES = {"tpm": 1 / 60, "tpmc": 1 / 60, "nopm": 1 / 60, "tph": 1 / 3600, "mpps": 1e6}
#: How many are counted as one, as in "IOPS (K)" and "throughput [Mops/s]".
MULTIPLE = re.compile(
    r"(?:x ?)?(?:(k|K|1000|10\^3|thousands?)|(M|10\^6|[Mm]illions?)|(G|10\^9))"
    r" ?(?:ops|req|reqs|requests|tx|tps|IOPS|IO)?(?: ?/ ?s| ?/ ?sec| per s| per second)?"
)
#: Letters before the name of a throughput, as in "kIOPS" and "Mops/s".
PREFIXES = {"k": 1e3, "m": 1e6}
BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
#: Words of a name that do not count if others are there.
SMALL = {*"avg average mean num number nr no of the n".split()}
#: Names of disks, as iostat has them.
DEVICE = re.compile(r"sd[a-z]+|nvme\d+n\d+|x?vd[a-z]+|dm-?\d+|md\d+")
#: What may be said of a column by --use, with its unit.
QUANTITY = re.compile(
    r"(N|X|lamda|R|Z|R_p\d+|[XR]_s[ed]|errors|run|[Uc]_[A-Za-z]\w*)\s*(?:\[(.*)\])?"
)


class Row(NamedTuple):
    """What a column holds, its unit (with "?" it may lack one; "any": it does not matter), what
    that means, and the names for it, between commas.
    """

    quantity: str
    unit: str
    meaning: str
    names: str


class Meaning(NamedTuple):
    """What a column holds, "" if its name is not in the list; the size of its unit; the kind of its
    unit (time, share or rate; "" if it has none); and its name when folded.
    """

    quantity: str
    size: float = 1.0
    kind: str = ""
    plain: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is a number of things done, in a time that its name does not say."""
        return not self.kind and any(row.unit == "rate" for row in _known().get(self.plain, ()))


@cache
def listed() -> list[Row]:
    """The list of known names."""
    text = Path(__file__).with_name("columns.csv").read_text(encoding="utf-8")
    return [Row(*row) for row in csv.reader(text.splitlines()[1:])]


@cache
def _known() -> dict[str, list[Row]]:
    """The rows of the list by the names in them, when folded."""
    found: dict[str, list[Row]] = {}
    for row in listed():
        for name in row.names.split(", "):
            found.setdefault("".join(re.findall(r"[^\W_]+", name)), []).append(row)
    return found


def _words(name: str) -> list[str]:
    text = re.sub("(?<=[a-z])(?=[A-Z])", " ", normalize("NFKC", name)).lower()
    return ["/" if word == "per" else word for word in re.findall(r"[^\W_]+|[%/]", text)]


def _parted(words: list[str]) -> tuple[list[str], str, float]:
    """The words of a name before its unit; the kind of the unit; and its size in our units."""
    if SHARES & {*words}:
        return [word for word in words if word not in SHARES], "share", 0.01
    rate = "".join(words[-2:])
    if rate in RATES:
        return words[:-2], "rate", RATES[rate]
    if words[1:] and words[-1] in SIZES:
        return words[:-1], "time", SIZES[words[-1]]
    return words, "", 1.0


def unit_of(text: str) -> tuple[str, float] | None:
    """The kind and the size of a unit, None for any other text.

    >>> unit_of("ms"), unit_of("1/minute"), unit_of("threads")
    (('time', 0.001), ('rate', 0.016666666666666666), None)
    """
    rest, kind, size = _parted(["", *_words(text)])
    return (kind, size) if kind and rest in ([""], ["", "1"]) else None


def _in_brackets(text: str) -> tuple[str, float] | None:
    """The kind and the size of a unit, also of many at once and of a throughput."""
    if multiple := MULTIPLE.fullmatch(text.strip()):
        return "rate", 1000.0 ** (multiple.lastindex or 0)
    rate = meaning(text)
    return unit_of(text) or (("rate", rate.size) if rate.quantity == "X" else None)


@cache
def meaning(name: str) -> Meaning:
    """What a column of this name holds. Neither case, spaces, signs and brackets of the name
    matter, nor a unit in the brackets or at its end, but for what the unit is.

    >>> meaning("Requests/sec")[:3], meaning("p99 (ms)")[:3], meaning("U_net_pct")[:3]
    (('X', 1.0, 'rate'), ('R_p99', 0.001, 'time'), ('U_net', 0.01, 'share'))
    """
    if own := _own(name):
        return own
    words, kind, size = _parted(_words(re.sub(BRACKETS, " ", name)))
    for text in re.findall(BRACKETS, name):
        kind, size = _in_brackets(text) or (kind, size)
    if DEVICE.match(name) and words[-1] in ("util", "busy"):
        return Meaning(f"U_{words[0]}", size, kind, name)
    plain = "".join([word for word in words if word not in SMALL] or words)
    for row in _known().get(plain, ()):
        if _fits(name, row, kind, size):
            return Meaning(row.quantity, size * SCALES.get(plain, 1.0), kind, plain)
    for row in _known().get(plain[1:], ()) if plain[:1] in PREFIXES else ():
        if row.quantity == "X" and _fits(name, row, kind, size):
            return Meaning("X", size * PREFIXES[plain[0]], kind, plain)
    return Meaning("", size, kind, plain)


def _own(name: str) -> Meaning | None:
    """What our names of a station hold, as U_net_pct and c_net."""
    signs = "_".join(re.findall(r"\w+", name.replace("%", " pct ")))
    found = re.fullmatch(r"([UuCc])_([A-Za-z]\w*?)(_pct|_percent)?", signs)
    if not found or found[2].endswith("_se") or (found[1] in "Cc" and found[3]):
        return None
    kind, size = ("share", 0.01) if found[3] else ("", 1.0)
    return Meaning(f"{'U' if found[1] in 'Uu' else 'c'}_{found[2]}", size, kind, signs)


def _fits(name: str, row: Row, kind: str, size: float) -> bool:
    """Whether a name has the unit that it must have. MB_s and requests_s are rates."""
    if row.unit == "any" or kind == row.unit.rstrip("?"):
        return True
    if row.unit == "rate" and kind == "time":
        return size == 1
    return not kind and (row.unit.endswith("?") or name in ("R", "Z"))
