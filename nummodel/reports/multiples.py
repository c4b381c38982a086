"""Many runs of one notebook at a glance: a recorded value as curves over a swept parameter."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from nummodel.reports.results import Outcome

#: More runs of a notebook than these are shown as curves and table, and only failed ones as cards.
MANY = 12
#: Most curves, and the size of each in units of its drawing.
PANELS, WIDTH, HEIGHT = 24, 160.0, 90.0


class Panel(NamedTuple):
    """A curve: the values of the other parameters, its points in the drawing, and its ends."""

    title: str
    points: list[tuple[float, float]]


class Multiples(NamedTuple):
    """Curves of the recorded value `name` over the parameter `over`, all with the same axes."""

    name: str
    over: str
    x: tuple[float, float]
    y: tuple[float, float]
    panels: list[Panel]
    omitted: int


def multiples(
    outcomes: Sequence[Outcome], given: list[str], recorded: list[str], default: dict[str, Any]
) -> Multiples | None:
    """The first recorded number that differs, over the parameter with most values; None where there
    is no such. `given` and `recorded` are the names of parameters and values that differ.
    """

    def value(outcome: Outcome, name: str) -> Any:
        return outcome.run.parameters.get(name, default.get(name))

    def numbers(values: list[Any]) -> bool:
        return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)

    done = [o for o in outcomes if not o.unfinished and not o.error]
    counts = {n: len({repr(value(o, n)) for o in done}) for n in given}
    axes = [n for n in given if counts[n] > 1 and numbers([value(o, n) for o in done])]
    names = [n for n in recorded if numbers([o.records.get(n) for o in done])]
    if not axes or not names:
        return None
    over, name = max(axes, key=lambda n: counts[n]), names[0]
    others = [n for n in given if n != over and counts[n] > 1]
    curves: dict[str, list[tuple[float, float]]] = {}
    for o in done:
        title = ", ".join(f"{n} = {value(o, n)}" for n in others)
        curves.setdefault(title, []).append((value(o, over), o.records[name]))
    x, y = ((min(v), max(v)) for v in zip(*chain(*curves.values()), strict=True))
    panels = []
    for title, curve in list(curves.items())[:PANELS]:
        at = [(_part(a, x) * WIDTH, (1 - _part(b, y)) * HEIGHT) for a, b in sorted(curve)]
        panels.append(Panel(title, at))
    return Multiples(name, over, x, y, panels, len(curves) - len(panels))


def _part(value: float, ends: tuple[float, float]) -> float:
    """Where a value lies between two others, from 0 to 1."""
    low, high = ends
    return (value - low) / (high - low) if high > low else 0.5
