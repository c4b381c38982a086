"""The error that a person at the keyboard reads, and how texts are shown to this person."""

import os
import sys
from contextlib import suppress

#: Longest line that is shown; of a longer line the middle is left out.
LONGEST = 1000


#: What a spreadsheet takes for the beginning of a formula, also after what it cuts off.
FORMULA = tuple("=+-@|\t\r\n")


class InputError(ValueError):
    """An input cannot be used; the message says where, what is wrong and what was expected."""


def line(text: str) -> str:
    """A text as one line for a terminal, with line breaks and control characters escaped.

    >>> line("two\\nlines"), len(line(100_000 * "a"))
    ('two\\\\nlines', 905)
    """
    short = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-400:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def cell(text: str) -> str:
    """A text as a cell of a CSV file: with an apostrophe where a spreadsheet would take it for a
    formula, but for a number.

    >>> cell("=1+1"), cell("-1"), cell("plain")
    ("'=1+1", '-1', 'plain')
    """
    words = text.split()
    with suppress(ValueError):
        if [float(word) for word in words]:
            return text
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def tell(text: str) -> None:
    """Print a message on stderr. Where stderr is closed or full, the work goes on."""
    try:
        print(f"nummodel: {line(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        with suppress(OSError):  # else Python would write the rest at its end, and fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
