"""The error that is meant for a person at the keyboard, and how a line is told to this person."""

import os
import sys
from contextlib import suppress

#: Longest line that is told; of a longer one the middle is left out.
LONGEST = 1000


class InputError(ValueError):
    """What was given cannot be used; the message says where, what is wrong, what was expected."""


def line(text: str) -> str:
    """A text as one line that a terminal only shows: escaped are control characters, and breaks.

    >>> line("two\\nlines"), len(line(100_000 * "a"))
    ('two\\\\nlines', 905)
    """
    kept = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-400:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in kept)


def tell(text: str) -> None:
    """Tell something on stderr. Where it is closed or full, the work goes on."""
    try:
        print(f"nummodel: {line(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        with suppress(OSError):  # else what is left would be written at the end, and fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
