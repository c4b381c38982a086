"""The result of `nummodel fit` as tables for people."""

from collections.abc import Mapping
from typing import Any

from nummodel.fits import Fit


def text(result: dict[str, Any], level: float, fits: Mapping[str, Fit]) -> str:
    """The result as tables for people."""
    lines = [
        "{y} against {x}: {n} points, {weights} weights".format(**result),
        *["closed weighs each column by its own errors"] * ("closed" in result["laws"]),
        f"in brackets: {100 * level:.15g} % intervals",
    ]
    meanings = {q: f.law.meaning(q).meaning for f in fits.values() for q in f.free}
    width = max((len(q) + 2 for q in meanings), default=0)
    lines += [f"{q:<{width}}{meaning}" for q, meaning in meanings.items()]
    for name, law in result["laws"].items():
        lines += ["", name]
        if "refused" in law:
            lines.append(f"  refused: {law['refused']}")
            continue
        for q, e in law["estimates"].items():
            on_bound = "  on its bound" * e["at_bound"]
            lines.append(f"  {q:<8}{e['value']:>12.5g}  {_span(e)}{on_bound}")
        if peak := law["peak"]:
            at = f"at {peak['N']:.4g}  {_span(peak)}".rstrip()
            lines.append(f"  peak    {peak['X']:>12.5g}  {at}")
        if law["aicc"] is not None:
            lines.append(f"  AICc    {law['aicc']:>12.1f}")
        if law["loo_rmse"] is not None:
            lines.append(f"  leave-one-out error {law['loo_rmse']:.4g}")
        if test := law["lack_of_fit"]:
            lines.append(f"  lack of fit: p = {test['p']:.2g}, {test['how']}")
        lines += [_held_out(p) for p in law["predictions"]]
    reasons = [f"  {reason}" for reason in result["why"].split("; ")]
    lines += ["", f"chosen: {result['chosen'] or 'none'}", *reasons]
    forecast = [f for f in result["forecast"] if f["X"] is not None]
    later = [p for p in result["held_out"] if p["value"] is not None]
    lines += ["", "at other loads"] if forecast or later else []
    for f in forecast:
        time = {"low": f["R_low"], "high": f["R_high"]}
        R = "" if f["R"] is None else f"  R {f['R']:.4g}  {_span(time)}"
        beside = "" if f["law"] is None else f"; {result['chosen']} says {f['law']:.5g}"
        by = f"  {f['by']}{beside if f['by'] == 'forecast' else ''}"
        lines.append(f"  at {f['N']:<6g}{f['X']:>11.5g}  {_span(f)}{R}{by}")
    lines += [f"{_held_out(p)}, by forecast" for p in later]
    return "\n".join(lines)


def _held_out(p: dict[str, Any]) -> str:
    """A prediction beside what was measured."""
    verdict = {None: "", True: "  inside", False: "  outside"}[p["inside"]]
    told = f"  observed {p['observed']:.5g}{verdict}"
    return f"  at {p['N']:<6g}{p['value']:>11.5g}  {_span(p)}{told}"


def _span(ends: dict[str, Any]) -> str:
    """An interval in brackets; an end that does not exist is left open."""
    low, high = ("..." if ends[end] is None else f"{ends[end]:.5g}" for end in ("low", "high"))
    return "" if low == high == "..." else f"[{low}, {high}]"
