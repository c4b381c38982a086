"""Outputs of measuring tools as tables. Each reader is a module here, recognised by content.

A reader has a docstring that says what it reads; `recognises(text)`, which looks at a text and says
whether it is an output of its tool; and `parse(text)`, which gives a `Reading` or raises
`Malformed` with the line that is wrong.
"""

import re
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from nummodel.errors import InputError
from nummodel.records.readers import _shell
from nummodel.records.readers._loads import with_load
from nummodel.records.readers._reading import Column, Malformed, Reading, is_workbook, text_of

__all__ = ["Column", "Reading", "known", "names", "parsed", "read", "reader", "recognised"]


#: Outputs that are not read, and what to do instead.
HINTS = {
    r"\A(?:[0-9]+ ){4}[0-9]{9,}|\A[0-9]{9,11}(?: [0-9]+){5}": "a log of one thread of pgbench, "
    "expected its summary, with -P 1 for samples",
    r'\A\{"type":"Metric"': "every event of k6, expected a file of --summary-export",
    r"^disk-? ?-*reads-*|\d+ K total memory": "vmstat -d or -s, expected vmstat 1",
}


#: Lines that a tool writes above its document.
NOTES = re.compile(r"\A(?:(?:note|fio|warning): .*\n)+(?=\{)", re.IGNORECASE)


@cache
def names() -> tuple[str, ...]:
    """All readers by name."""
    return tuple(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))


def reader(name: str) -> ModuleType:
    """A reader by its name. Raises InputError if there is none."""
    if name not in names():
        raise InputError(f"no reader {name!r}, expected one of: {', '.join(names())}")
    return import_module(f"{__name__}.{name}")


def read(
    path: str | Path, format: str | None = None, n: float | None = None
) -> tuple[str, Reading]:
    """The reader of a file, found by its content unless `format` names it, and what it found. `n`
    is the load of runs whose output does not say it.

    Raises InputError for a file that no reader or several know, or that is cut or mixed.
    """
    if is_workbook(path):
        return "excel", reader("excel").read(path)
    return parsed(text_of(path), path, format, n)


def recognised(text: str) -> list[str]:
    """The readers that know a text: tools if there are any, else perhaps the one of tables."""
    known = [name for name in names() if reader(name).recognises(text)]
    return [name for name in known if name != "table"] or known


def known(text: str) -> tuple[list[str], _shell.Output]:
    """The readers that know a text, and the text without what stands around the output. A table is
    taken as it stands if it can be.
    """
    output = _around(text)
    found = recognised(output.text)
    if found in ([], ["table"]) and (alike := recognised(text)):
        return alike, _shell.Output(text, 0)
    return found, output


def _around(text: str) -> _shell.Output:
    """A text without what stands around the output, or the note above a document."""
    text = NOTES.sub("", text)
    return _shell.Output(text, 0) if text.lstrip()[:1] == "{" else _shell.output(text)


def _doubt(special: list[str], text: str) -> str:
    """Why no reader takes a text, or which might."""
    if special:
        what = f"may be of {' or '.join(special)}"
    elif hints := [HINTS[known] for known in HINTS if re.search(known, text, re.MULTILINE)]:
        return hints[0]
    else:
        what = "the output of no known tool"
    return f"{what}, expected one that --format names (tried: {', '.join(names())})"


def parsed(
    text: str, path: str | Path, format: str | None = None, n: float | None = None
) -> tuple[str, Reading]:
    """As `read`, of a text that was in the file."""
    special, output = ([format], _around(text)) if format else known(text)
    if len(special) != 1:
        raise InputError(f"{path}: {_doubt(special, text[:20_000])}")
    try:
        reading = reader(special[0]).parse(output.text)
        more = (f"{output.lines} lines of a shell or a page are left out",) * (output.lines > 0)
        reading = replace(reading, left_out=(*reading.left_out, *more))
        return special[0], reading if n is None or special == ["table"] else with_load(reading, n)
    except Malformed as error:
        raise error.at(path, special[0]) from None
