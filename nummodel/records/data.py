"""Published tables: the figures in SI units, how exactly each is known, and what repeats what.

A table is one CSV with the digits that its source prints; `data/datapackage.json` is the card of
all of them. A printed figure is known to half a unit of its last digit; one that is computed from
other columns is known no better than their rounding allows.

Words make a figure less exact, alike in the tables of all four documents. A figure that is called
about or approximate is exact to half a step. The step is that of its second digit, or of its last
nonzero digit if this comes later; it is five units of a digit that is 0 or 5, and one unit of any
other digit. So "about 50" is 47.5 to 52.5, "about 45,000" is 42,500 to 47,500 and "about 71,000" is
70,500 to 71,500. A single digit is exact to half a unit: "about 3" is 2.5 to 3.5.
"""

import json
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nummodel.models import operational

if TYPE_CHECKING:
    import pandas as pd

_PACKAGE = Path(__file__).parent.parent
#: The folder that holds `data/` and `notebooks/`: the checkout, or what the wheel carries.
HOME = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent

#: Unit of a column: the suffix that the CSV marks it with, and its size in SI units.
UNITS = {
    "-": ("", 1.0),
    "s": ("", 1.0),
    "1/s": ("_per_s", 1.0),
    "1/h": ("_per_h", 1 / 3600),
    "MB/s": ("_MB_per_s", 1e6),
    "ms": ("_ms", 1e-3),
    "us": ("_us", 1e-6),
    "ns": ("_ns", 1e-9),
    "%": ("_pct", 1e-2),
}


#: What a card may name as the way in which one column follows from others.
IDENTITIES: dict[str, Callable[..., Any]] = {
    "same": lambda value: value,
    "ratio": lambda value, base: value / base,
    "total": lambda first, second: first + second,
    "full_throughput": operational.full_throughput,
    "utilisation": operational.utilisation,
    "demand": operational.demand,
}


class Printed(float):
    """A figure from a table, with `half`: how far off it may be by rounding alone."""

    half: float
    source: str

    def __new__(cls, figure: float, half: float, source: str):
        self = super().__new__(cls, figure)
        self.half, self.source = half, source
        return self


class Card(dict):
    """What `data/datapackage.json` says of a table; in a notebook it shows itself."""

    def _repr_html_(self) -> str:
        source = "; ".join(f"{s['title']}: {s['locator']}" for s in self["sources"])
        status = f"{self['rows']} rows; {self['standing']}; {self['licenses'][0]['title']}"
        lines = [escape(line) for line in (self["title"], self["description"], source, status)]
        head = _row(("column", "unit", "rounding", "meaning"), "th")
        rows = "".join(map(_row, self._columns()))
        more = f'<div style="opacity:0.75">{"<br>".join(lines[1:])}</div>'
        return f"<div><b>{lines[0]}</b>{more}<table>{head}{rows}</table></div>"

    def _columns(self) -> list[tuple[str, str, str, str]]:
        """Name of every column, the unit that it is printed in, how far off rounding leaves its
        figures in that unit, at most, and its meaning.
        """
        largest, rows = half_widths(self["name"]).max(), []
        for field in self["schema"]["fields"]:
            half = largest[_short(field)] / UNITS[field["unit"]][1]
            rounding = f"± {half:.2g}" if half else "" if field["type"] == "string" else "none"
            unit = "" if field["unit"] == "-" else field["unit"]
            rows.append((_short(field), unit, rounding, field["description"]))
        return rows


@cache
def _cards() -> dict[str, Card]:
    package = json.loads((HOME / "data" / "datapackage.json").read_text(encoding="utf-8"))
    return {resource["name"]: Card(resource) for resource in package["resources"]}


def tables() -> list[str]:
    """Names of all tables."""
    return list(_cards())


def card(name: str) -> Card:
    """The card of a table: title, source, standing, columns with unit and meaning, identities."""
    try:
        return _cards()[name]
    except KeyError:
        raise KeyError(f"no table {name!r}; there are: {', '.join(tables())}") from None


def path(name: str | Path) -> Path:
    """The file of a table, or `name` itself where no table is called so."""
    return HOME / "data" / card(str(name))["path"] if str(name) in tables() else Path(name)


def load(name: str) -> "pd.DataFrame":
    """A table in SI units; the unit suffix of a column's name is dropped (`util_pct`: `util`)."""
    return _read(name)[0].copy()


def label(name: str, column: str) -> str:
    """Axis label of a column of `load(name)`: what the source calls it, and its SI unit."""
    (field,) = (f for f in card(name)["schema"]["fields"] if _short(f) == column)
    in_si = {"ms": "s", "us": "s", "ns": "s", "1/h": "1/s", "MB/s": "B/s"}
    unit = in_si.get(field["unit"], field["unit"])
    return field["title"] + (f" [{unit}]" if unit not in "-%" else "")


def half_widths(name: str) -> "pd.DataFrame":
    """How far off each figure of `load(name)` may be: by its own rounding and by that of the
    columns that it is computed from. Zero for counts and text.
    """
    halves = _read(name)[1].copy()
    own = halves.copy()
    for identity in card(name).get("identities", []):  # in the order in which columns follow
        column = identity["column"]
        inherited = own[column] + _follow(name, identity, halves)[1]
        halves[column] = inherited.combine(halves[column], max)
    return halves


def value(name: str, column: str, **row) -> Printed:
    """One figure, found by the value of another column: `value("zvm-scaling", "itr", N=24)`."""
    frame = load(name)
    where = (frame[list(row)] == list(row.values())).all(axis=1)
    if where.sum() != 1:
        raise KeyError(f"{name} has {where.sum()} rows with {row}, expected one")
    source = f"{card(name)['sources'][0]['title']}, {card(name)['sources'][0]['locator']}"
    return Printed(frame[column][where].item(), half_widths(name)[column][where].item(), source)


def audit(name: str) -> "pd.DataFrame":
    """Every figure that its card says follows from others, beside what follows.

    Columns: `column`, `function`, `row`, `printed`, `computed`, `slack` (what rounding of the
    figure and of its sources allows), `telling` (neither a zero nor a ratio of a figure to itself,
    which could hardly be wrong) and `holds`.
    """
    import pandas as pd

    (frame, halves), parts = _read(name), []
    for identity in card(name).get("identities", []):
        column = identity["column"]
        computed, spread = _follow(name, identity, halves)
        bases = [a["row"] for a in identity["arguments"].values() if isinstance(a, dict)]
        part = {
            "column": column,
            "function": identity["function"],
            "row": frame[card(name)["schema"]["primaryKey"][0]],
            "printed": frame[column],
            "computed": computed,
            "slack": halves[column] + spread,
            "telling": (frame[column] != 0) & ~frame.index.isin(bases),
        }
        parts.append(pd.DataFrame(part))
    if not parts:
        return pd.DataFrame(columns=["column", "row", "printed", "computed", "telling", "holds"])
    table = pd.concat(parts, ignore_index=True)
    miss = (table["printed"] - table["computed"]).abs()
    table["holds"] = miss <= table["slack"] + 1e-12 * table["printed"].abs()
    return table


def _row(cells: tuple[str, ...], kind: str = "td") -> str:
    """A row of a table, aligned to the left (JupyterLab aligns to the right)."""
    row = (f'<{kind} style="text-align:left">{escape(cell)}</{kind}>' for cell in cells)
    return f"<tr>{''.join(row)}</tr>"


def _short(field: dict) -> str:
    return field["name"].removesuffix(UNITS[field["unit"]][0])


@cache
def _read(name: str) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """A table in SI units; and half a unit of each last digit, or half the card's resolution."""
    import pandas as pd

    text = pd.read_csv(HOME / "data" / card(name)["path"], dtype=str)
    types = {"integer": int, "number": float, "string": str}
    figures, halves = {}, {}
    for field in card(name)["schema"]["fields"]:
        cells, column, size = text[field["name"]], _short(field), UNITS[field["unit"]][1]
        figures[column] = cells.astype(types[field["type"]])
        halves[column] = pd.Series(0.0, text.index)
        if field["type"] == "number":
            last_digit = 10.0 ** -cells.str.partition(".")[2].str.len()
            figures[column] *= size
            halves[column] += 0.5 * size * field.get("resolution", last_digit)
    return pd.DataFrame(figures), pd.DataFrame(halves)


def _follow(name: str, identity: dict, halves: "pd.DataFrame") -> tuple["pd.Series", "pd.Series"]:
    """What an identity computes, and how far its sources' `halves` can move that."""
    import pandas as pd

    frame = _read(name)[0]
    function = IDENTITIES[identity["function"]]
    given, spread = {}, {}
    for argument, source in identity["arguments"].items():
        if isinstance(source, str):
            given[argument], spread[argument] = frame[source], halves[source]
        elif isinstance(source, dict):
            column, row = source["column"], source["row"]
            given[argument], spread[argument] = frame[column][row], halves[column][row]
        else:
            given[argument], spread[argument] = float(source), 0.0
    computed = function(**given)
    moved = sum(abs(function(**given | {a: given[a] + spread[a]}) - computed) for a in given)
    return pd.Series(computed, frame.index), pd.Series(moved, frame.index)
