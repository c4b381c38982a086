"""The error that a person at the keyboard reads, and how a line is shown to this person."""

import os
import sys
from contextlib import suppress

#: Longest line that is shown; of a longer line the middle is left out.
LONGEST = 1000


class InputError(ValueError):
    """An input cannot be used; the message says where, what is wrong and what was expected."""


def line(text: str) -> str:
    """A text as one line for a terminal, with line breaks and control characters escaped.

    >>> line("two\\nlines"), len(line(100_000 * "a"))
    ('two\\\\nlines', 905)
    """
    short = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-400:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def tell(text: str) -> None:
    """Print a message on stderr. Where stderr is closed or full, the work goes on."""
    try:
        print(f"nummodel: {line(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        with suppress(OSError):  # else Python would write the rest at its end, and fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
