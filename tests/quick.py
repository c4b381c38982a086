"""Which cases of a test `make test` runs. `make test-all` runs all cases."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*case: Any) -> Any:
    """A case that `make test` leaves out."""
    return pytest.param(*case, marks=pytest.mark.slow)


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """These cases, of which `make test` runs the first of every `count`."""
    return [
        slow(*(case if isinstance(case, tuple) else (case,))) if i % count else case
        for i, case in enumerate(cases)
    ]
