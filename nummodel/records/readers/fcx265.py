"""z/VM Performance Toolkit FCX265, LOCKLOG: spin locks of the hypervisor by time.

Admitted with the layouts of two releases: of z/VM 5.3, as its performance report quotes the screen
("Spin Lock Activity"), and of z/VM 7.3, as its documentation shows it ("Spin Lock Collision
Activity"). Other layouts are refused.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._reading import Column, Malformed, Reading

FOUR = ("rate", "spin", "share", "cads")
TIME = re.compile(r">>Mean>>|[0-9]{1,2}:[0-9]{2}:[0-9]{2}", re.ASCII)
HEAD = re.compile(r"1? {0,8}FCX265 ")
#: Powers of ten: per second, microseconds, percent, per second.
POWERS = dict(zip(FOUR, (0, -6, -2, 0), strict=True))
MEANINGS = {
    "rate": ("1/s", "acquisitions that had to spin"),
    "spin": ("s", "mean spinning time of those that had to spin"),
    "share": ("-", "share of processor time spent spinning"),
    "cads": ("1/s", "compare-and-delay instructions while spinning"),
}
COLUMNS = {
    "end": Column("-", "end of the interval, time of day; >>Mean>> over all intervals"),
    "lock": Column("-", "name of the spin lock"),
} | {
    f"{kind}_{name}": Column(unit, f"{meaning}, {words}")
    for kind, words in (
        ("total", "exclusive and shared"),
        ("exclusive", "exclusive only"),
        ("shared", "shared only"),
    )
    for name, (unit, meaning) in MEANINGS.items()
}


def recognises(text: str) -> bool:
    """Whether the text has the head of the screen, or its columns."""
    return "FCX265 " in text or "<------- Spin Lock" in text


def parse(text: str) -> Reading:
    """A row for each printed row. Raises Malformed for other layouts."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    names: tuple[str, ...] = ()
    state, outside, cut, width = "", 0, False, 0
    lines = text.split("\n")
    for line, printed in enumerate(lines, 1):
        cells = printed.split()
        if HEAD.match(printed[:20]):
            state = "head"
        elif "Spin Lock" in printed and "Activity" in printed and len(printed) < 500:
            state, names = "head", FOUR if "Collision" in printed else FOUR[:3]
        elif cells[:2] == ["End", "Time"]:
            state = _columns_end(names, line)
        elif state == "rows" and cells:
            if line == len(lines) and (len(printed) < width or len(cells) < 2 + 3 * len(names)):
                cut = True
            elif TIME.fullmatch(cells[0]):
                rows.append(_row(cells, names, line))
                width = len(printed)
            elif rows:
                # Whatever comes below the rows is of another screen, or of a document.
                _refuse_row(cells, line)
                state, outside = "", outside + 1
            else:
                raise Malformed(line, f"{cells[0][:40]!r}, expected an interval such as >>Mean>>")
        elif not state and cells:
            _refuse_row(cells, line)
            outside += 1
    if not rows:
        raise Malformed(0, "no row of a lock, expected the screen FCX265")
    table = pd.DataFrame(rows)
    told = ["The heading of the screen is left out."]
    told += [f"Lines outside of the screen are left out: {outside}."] * bool(outside)
    odd = sum(map(_odd, rows))
    told += [f"The total rate is not exclusive and shared in {odd} of {len(rows)} rows."] * bool(
        odd
    )
    told += ["The last line is cut off and left out."] * cut
    return Reading(table, {n: COLUMNS[n] for n in table}, tuple(told))


def _columns_end(names: tuple[str, ...], line: int) -> str:
    """The state below the line that ends the names of columns. Raises Malformed."""
    if not names:
        raise Malformed(line, "columns without a title, expected 'Spin Lock Activity' above")
    return "rows"


def _refuse_row(cells: list[str], line: int) -> None:
    """Raise Malformed for figures below other columns, or without an interval."""
    figures = [cell for cell in cells[2:14] if re.fullmatch(r"[0-9.]{1,20}", cell)]
    if len(cells) in (11, 14) and len(figures) > 6:
        raise Malformed(line, f"{cells[0][:40]!r} and figures, expected a row of the screen FCX265")


def _row(cells: list[str], names: tuple[str, ...], line: int) -> dict[str, Any]:
    """The figures of a lock: in total, exclusive and shared. Raises Malformed."""
    if len(cells) != 2 + 3 * len(names):
        expected = f"an interval, a lock and {3 * len(names)} figures"
        raise Malformed(line, f"{len(cells)} cells, expected {expected}")
    row: dict[str, Any] = {"end": cells[0], "lock": cells[1]}
    figures = iter(cells[2:])
    for kind in ("total", "exclusive", "shared"):
        for name in names:
            cell = next(figures)
            # The toolkit prints no 0 before the point.
            plain = f"0{cell}" if cell.startswith(".") else cell
            row[f"{kind}_{name}"] = scaled(plain, POWERS[name], line, f"{kind} {name}")
    return row


def _odd(row: dict[str, Any]) -> bool:
    """Whether the total rate is not the sum of both kinds, as far as the printed digits tell."""
    both = row["exclusive_rate"] + row["shared_rate"]
    # One decimal, or whole numbers from 1000 on.
    return abs(both - row["total_rate"]) > (0.15 if row["total_rate"] < 1000 else 1.1)
