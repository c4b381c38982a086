"""Claims: a documented figure beside the model's, recorded in the executed notebook.

A claim shows a row where it is made and travels in the notebook as a display of MIME type `MIME`,
from which a report collects it.
"""

import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from html import escape
from itertools import product
from typing import Any

import numpy as np

from nummodel.nomenclature import show
from nummodel.records.data import Printed

MIME = "application/vnd.nummodel.claim+json"
SCHEMA = 1
#: The mark beside a row, by its verdict. The words say it as well.
MARKS = {
    "holds": "#009E73",
    "is compatible": "#56B4E9",
    "misses, as known": "#E69F00",
    "FAILS": "#D55E00",
}
KINDS = ("audit", "calibration", "fit", "prediction", "conditional prediction")
#: What this process has claimed and recorded: a report holds it against what has reached it.
made: list[str] = []


@dataclass(frozen=True)
class Claim:
    """What was claimed, and how it went: `model` had to meet `low` to `high`; None: no end."""

    what: str
    kind: str
    model: Any
    documented: Any = None
    low: float | None = None
    high: float | None = None
    hit: bool | None = None
    expect: str = "hit"
    ok: bool = True
    why: str = ""
    source: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        for name in ("what", "kind", "expect", "why", "source", "unit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"claim: {name} is {getattr(self, name)!r:.80}, expected a text")

    def __str__(self) -> str:
        if self.kind == "record":
            return self.said
        why = f" ({self.why})" if self.why else ""
        return f"{self.outcome}: {self.said} [{self.kind}]{why}"

    @property
    def said(self) -> str:
        """What was claimed, with its figures unless it is a statement that is true."""
        return f"{self.what}: {self.figures}" if self.figures else self.what

    @property
    def figures(self) -> str:
        """The figures with their unit; nothing for a statement that is true."""
        model = show(self.model, self.unit)
        if self.kind == "record":
            return model
        if self.documented is True and self.model is True:
            return ""
        return f"model {model}, documented {show(self.documented, self.unit)}"

    @property
    def verdict(self) -> str:
        """In a word or two. An interval holds if all of it is within what is documented; if only
        some of it is, the two are compatible, which says less the wider it is. A record has none.
        """
        if self.kind == "record":
            return ""
        if not self.ok:
            return "FAILS"
        if self.expect == "miss":
            return "misses, as known"
        if isinstance(self.model, list) and not self._within():
            return "is compatible"
        return "holds"

    @property
    def margin(self) -> str:
        """How far a figure is off the documented one, and how far it may be off. Nothing for a
        statement or an interval, which is shown as it is.

        Only a tolerance from rounding goes without a `why`. One below 0.1 % is shown as a figure.
        """
        if type(self.documented) not in (int, float) or self.high is None:
            return ""
        tolerance = self.high - self.documented
        share = tolerance / abs(self.documented) if self.documented else 0.0
        limit = f"±{_size(tolerance)}"
        if not self.why:
            limit = f"rounding ({limit})"
        elif share >= 0.001:
            limit = f"{_size(100 * share)} %"
            if not isinstance(self.model, list):
                off = 100 * abs(self.model / self.documented - 1)
                error = _size(round(off, 2))
                if error == _size(100 * share):  # too near to be told apart in these digits
                    error = f"{off:.4g}"
                return f"{error} % off (tolerance {limit})"
        return f"within {limit}" if self.hit else f"by more than {limit}"

    @property
    def outcome(self) -> str:
        """The verdict, with the margin that belongs to it."""
        return ", ".join(filter(None, (self.verdict, self.margin)))

    def _within(self) -> bool:
        least, most = self.model
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return low <= least and most <= high

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {
            MIME: {"schema": SCHEMA} | asdict(self),
            "text/html": table([self]),
            "text/plain": str(self),
        }

    def _row(self) -> str:
        """Of a table: what it is about, the figures, and how it went."""
        mark, went = "#D9DEE4", ""
        if self.kind != "record":
            mark, margin = MARKS[self.verdict], f", {self.margin}" if self.margin else ""
            more = f"{self.kind}; {self.why}" if self.why else self.kind
            went = f"<b>{self.verdict}</b>{margin} <i>({escape(more)})</i>"
        first = f'<td style="border-left:4px solid {mark}">{escape(self.what)}</td>'
        rest = f"<td>{escape(self.figures)}</td><td>{went}</td>"
        return f'<tr id="{escape(anchor(self.what))}">{first}{rest}</tr>'


def table(claims: Iterable[Claim]) -> str:
    """Claims and records as the rows of an HTML table; a link to `anchor` leads to a row."""
    return f'<table class="claims">{"".join(claim._row() for claim in claims)}</table>'


def anchor(what: str) -> str:
    """Where a link in a notebook's text leads that names this claim or record.

    >>> anchor("wait by M/M/1 at 90%, service times")
    'wait-by-m-m-1-at-90-service-times'
    """
    return re.sub(r"\W+", "-", what.lower()).strip("-")


def check(
    what: str,
    *,
    model: Any,
    documented: Any,
    rtol: float | None = None,
    atol: float | None = None,
    kind: str,
    expect: str = "hit",
    why: str = "",
    unit: str = "",
) -> None:
    """Claim that `model` agrees with `documented`, show the row, and fail if it does not.

    `documented` is a figure from `data.value` (it is known to its rounding), a number with `rtol`
    or `atol` and a `why`, an interval `(low, high)`, or a truth value. `model` is a number, a truth
    value, or an interval, which is compatible if they have something in common. `kind` is one of
    `KINDS`. `expect="miss"` with a `why` is for a known failure of a model: then a hit fails. For
    `unit` see `record`.

    Raises AssertionError, after the row is shown, if the claim does not go as expected, and
    ValueError for a claim that cannot be put.
    """
    if (kind, expect) not in product(KINDS, ("hit", "miss")):
        expected = f"expected one of {', '.join(KINDS)}, and 'hit' or 'miss'"
        raise ValueError(f"{what}: kind {kind!r} and expect {expect!r}, {expected}")
    tolerance = (rtol, atol) != (None, None)
    if not why and (expect == "miss" or tolerance):
        raise ValueError(f"{what}: a tolerance or a known miss needs a why")
    statement = isinstance(documented, (bool, np.bool_))
    if tolerance and (statement or isinstance(documented, (tuple, list))):
        raise ValueError(f"{what}: only a number has a tolerance")
    if model is None or statement != isinstance(model, (bool, np.bool_)):
        raise ValueError(f"{what}: model {model!r} cannot be held against {documented!r}")
    if statement:
        low, high, hit = None, None, bool(model) == bool(documented)
    else:
        low, high = _bounds(what, documented, rtol, atol)
        hit = _meets(what, model, documented, low, high)
    claim = Claim(
        what=what,
        kind=kind,
        model=_plain(model),
        documented=_plain(documented),
        low=_plain(low),
        high=_plain(high),
        hit=hit,
        expect=expect,
        ok=hit == (expect == "hit"),
        why=why,
        source=getattr(documented, "source", ""),
        unit=unit,
    )
    _display(claim)
    assert claim.ok, f"{claim}"


def record(name: str, value: Any, unit: str = "") -> None:
    """Store a result that has no documented value: a number, truth value, text or interval.

    `unit` says how a person reads it: "%" of a share, "s" of a time, "1/s" of a rate, or a word.
    """
    _display(Claim(what=name, kind="record", model=_plain(value), unit=unit))


def collected(notebook: Any) -> Iterator[dict]:
    """The claims and records in the outputs of an executed notebook, in order, with verdicts and
    margins. A display that only looks like a claim becomes one that fails.
    """
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if MIME in data:
                claim = read(data[MIME])
                went = {"verdict": claim.verdict, "margin": claim.margin}
                yield {"schema": SCHEMA} | asdict(claim) | went


def read(stored: Any) -> Claim:
    """The claim that a display stores; a failed one, if it only looks like a claim."""
    try:
        stored = {"unit": ""} | stored  # which earlier reports did not store
        claim = Claim(**{f.name: stored[f.name] for f in fields(Claim)})
        str(claim)
        return replace(claim, ok=bool(claim.ok))
    except Exception as error:  # a notebook may display whatever it likes
        what = f"a claim that cannot be read: {type(error).__name__}: {error}"
        return Claim(what, "unreadable", None, ok=False)


def agrees(value: Any, expected: Any) -> bool:
    """Whether a recorded value is what an exercise expects: inside the interval `[low, high]`,
    equal to a number to the digits it is written with, or the same text, truth value or None. Of
    a recorded interval, each end is held against its own.

    >>> agrees(0.02571, 0.0257), agrees(0.0258, 0.0257), agrees(24.5, [20, 30])
    (True, False, True)
    >>> agrees([32.36, 40.5], [32.4, 40.5]), agrees([32.36, 40.5], [30.0, 41.0])
    (True, False)
    """
    if isinstance(expected, list) and isinstance(value, (list, tuple)):
        return len(value) == len(expected) and all(map(agrees, value, expected))
    if isinstance(expected, list):
        low, high = expected
        return (
            value is not None and (low is None or low <= value) and (high is None or value <= high)
        )
    if isinstance(expected, float):
        digits = -int(Decimal(repr(expected)).as_tuple().exponent)
        return isinstance(value, (int, float)) and round(value, digits) == expected
    return value == expected


def _size(value: float) -> str:
    """A tolerance or an error: whole from ten on, two digits below."""
    return show(round(value)) if abs(value) >= 10 else f"{value:.2g}"


def _bounds(what: str, documented: Any, rtol: float | None, atol: float | None):
    """From where to where a model meets what is documented, a number or an interval."""
    if isinstance(documented, (tuple, list)):
        low, high = documented
        return low, high
    if rtol is not None:
        half = rtol * abs(documented)
    elif atol is not None:
        half = atol
    elif isinstance(documented, Printed):
        half = documented.half
    else:
        raise ValueError(f"{what}: no tolerance; take the figure from data.value, or say rtol, why")
    half *= 1 + 1e-9  # a figure that is exactly half a unit off rounds either way
    return documented - half, documented + half


def _meets(what: str, model: Any, documented: Any, low: float, high: float) -> bool:
    """Whether a model, a number or an interval, has something in common with `low` to `high`."""
    first, last = model if isinstance(model, (tuple, list)) else (model, model)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError(f"{what}: the model gives {model}, expected finite figures")
    if not (low <= high and first <= last):
        raise ValueError(f"{what}: {model} against {documented}, expected the lower end first")
    return bool(low <= last and first <= high)


def _plain(value: Any) -> Any:
    """As JSON has it: no NumPy types, None for an open end, lists for tuples."""
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        value = float(value)
        return value if math.isfinite(value) else None
    return value


def _display(claim: Claim) -> None:
    made.append(claim.what)
    # Where no notebook runs, IPython may not even be installed.
    shell = sys.modules.get("IPython.core.interactiveshell")
    if shell and shell.InteractiveShell.initialized():
        from IPython.display import display

        display(claim)
    else:
        print(claim)
