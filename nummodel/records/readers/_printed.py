"""Tables that a tool prints, as declarations: the lines around the rows, and the figures of a row.

A reader declares a `Printed` and takes its `recognises` and `parse`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from nummodel.records.readers._output import table_of, take
from nummodel.records.readers._reading import Column, Reading

#: Characters of a line that patterns see, at most.
LONGEST = 2000
#: The first column of all tables.
PART = {"part": Column("-", "which of several outputs in the file, from 1 on")}


class Head(NamedTuple):
    """A line without figures: its beginning; the sentence about how many such lines are left out,
    if any; what the line says of the rows below, beside the named groups of the pattern; and
    whether it begins another part if the one above has rows.
    """

    pattern: str
    left_out: str = ""
    says: Mapping[str, str] = {}
    begins: bool = False


@dataclass
class Seen:
    """The rows of the lines above, their part, what was `said` of the rows below, how `often` a
    name was seen, and counts of what was left out.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    part: int = 1
    said: dict[str, str] = field(default_factory=dict)
    often: Counter[Any] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The output of a tool. Patterns see lines without their indent.

    `known` are patterns that only texts of the tool have. `row` gives the rows of a line, or None
    for a line that is none; it may raise Malformed. `whole` says whether a last line without a line
    end is whole.
    """

    known: tuple[str, ...]
    heads: tuple[Head, ...]
    row: Callable[[Seen, str, int], list[dict[str, Any]] | None]
    columns: Mapping[str, Column]
    expected: str
    whole: Callable[[Seen, str], bool]

    @cached_property
    def _heads(self) -> list[tuple[re.Pattern, Head]]:
        return [(re.compile(head.pattern), head) for head in self.heads]

    def recognises(self, text: str) -> bool:
        """Whether a text has what only texts of the tool have."""
        return any(re.search(pattern, text, re.MULTILINE) for pattern in self.known)

    def parse(self, text: str) -> Reading:
        """A row for each printed row. Raises Malformed for other lines among the rows."""
        seen = Seen()

        def head(line: str, cells: list[str], at: int) -> bool:
            return self._head(seen, line.strip()[:LONGEST])

        def row(line: str, cells: list[str], at: int) -> bool:
            rows = self.row(seen, line.lstrip()[:LONGEST], at)
            seen.rows += [{"part": seen.part} | row for row in rows or ()]
            return rows is not None

        outside = take(text, head, row, lambda line: self.whole(seen, line.strip()))
        told = [f"{what}: {count}." for what, count in seen.left_out.items() if what and count]
        return table_of(seen.rows, {**PART, **self.columns}, told + outside, self.expected)

    def _head(self, seen: Seen, line: str) -> bool:
        """Take a line that has no figures."""
        found = [(match, head) for pattern, head in self._heads if (match := pattern.match(line))]
        begins = any(head.begins for _, head in found)
        if begins and seen.rows and seen.rows[-1]["part"] == seen.part:
            seen.part, seen.said = seen.part + 1, {}
        for match, head in found:
            groups = {name: text for name, text in match.groupdict().items() if text is not None}
            seen.said |= {**head.says, **groups}
            seen.left_out[head.left_out] += 1
        return bool(found)
