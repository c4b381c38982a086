"""Several runs beside each other: what they were told and what they found."""

import csv
from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nummodel.report import Outcome


def table(outcomes: list["Outcome"]) -> str:
    """One line a run, as CSV: parameters, status, time, claims that hold, and what it recorded.

    An interval takes two columns, since no program reads it in one.
    """
    names = told(outcomes)
    found = [_flat(o.records) for o in outcomes]
    recorded = _names(found)
    head = ["run", "notebook", "status", "seconds", "claims", "claims that hold", "error"]
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*head, *(f"parameter {name}" for name in names), *recorded])
    for outcome, values in zip(outcomes, found, strict=True):
        claims = checked(outcome)
        line: list[Any] = [outcome.run.name, outcome.run.notebook.stem, status(outcome)]
        line += [f"{outcome.seconds:.2f}", len(claims), sum(c["ok"] for c in claims), outcome.error]
        line += [_text(outcome.run.parameters.get(name)) for name in names]
        writer.writerow(line + [_text(values.get(name)) for name in recorded])
    return out.getvalue()


def status(outcome: "Outcome") -> str:
    """How a run went, in one word."""
    return "failed" if outcome.error else "executed"


def checked(outcome: "Outcome") -> list[dict]:
    """The claims of a run without what it merely recorded."""
    return [claim for claim in outcome.claims if claim["kind"] != "record"]


def told(outcomes: list["Outcome"]) -> list[str]:
    """The parameters that some of the runs were given."""
    return _names(o.run.parameters for o in outcomes)


def varying(outcomes: list["Outcome"]) -> list[str]:
    """The recorded values that are not the same in all runs that reached them."""
    recorded = [o.records for o in outcomes]
    return [
        name
        for name in _names(recorded)
        if len({repr(values[name]) for values in recorded if name in values}) > 1
    ]


def _names(mappings: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _flat(records: dict[str, Any]) -> dict[str, Any]:
    """Intervals as their two ends."""
    flat: dict[str, Any] = {}
    for name, value in records.items():
        if isinstance(value, list) and len(value) == 2:
            flat |= {f"{name}, low": value[0], f"{name}, high": value[1]}
        else:
            flat[name] = value
    return flat


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else value
