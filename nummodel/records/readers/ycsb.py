"""YCSB 0.x: the summary of each run. R is the mean over all operations."""

import re
from collections import defaultdict

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import figure

OPERATION = re.compile(
    r"\[([A-Z][A-Z_-]{1,40})\], (Operations|AverageLatency\(us\)|Return=\w+|"
    r"[0-9.]+(?:th)?PercentileLatency\(us\)), ([0-9.eE+-]+)$"
)
MEAN = "AverageLatency(us)"
LATE = re.compile(r"([0-9.]+)(?:th)?Percentile")


def _kinds(run: Run) -> dict[str, dict[str, float]]:
    """The figures of each kind of operation."""
    kinds: dict[str, dict[str, float]] = defaultdict(dict)
    for line, text in run.lines:
        found = OPERATION.match(text[:200])
        value = figure(found[3], "", line, found[2]) if found else None
        if found and found[1] != "CLEANUP" and isinstance(value, float):
            kinds[found[1]][found[2]] = value
    return kinds


def _late(figures: dict[str, float]) -> dict[str, float]:
    """The percentiles of a kind of operation."""
    found = ((LATE.match(name), R) for name, R in figures.items())
    return {f"R_p{late[1]}": R * 1e-6 for late, R in found if late}


def finish(run: Run) -> None:
    """The mean response time and failures of all operations together."""
    kinds = _kinds(run)
    lost = sum(v.get("Operations", 0.0) for k, v in kinds.items() if k.endswith("-FAILED"))
    work = [v for k, v in kinds.items() if v.get("Operations") and not k.endswith("-FAILED")]
    count = sum(v["Operations"] for v in work)
    if not count:
        return
    bad = sum(v[n] for v in work for n in v if n.startswith("Return=") and n != "Return=OK")
    total = sum(v["Operations"] * v.get(MEAN, float("nan")) for v in work)
    run.row |= {"events": count, "failed": max(lost, bad), "R": total / count * 1e-6}
    if len(work) == 1:
        run.row |= _late(work[0])


YCSB = Tool(
    begins=(r"Command line: ", r"\[OVERALL\], RunTime", r"\[OVERALL\], "),
    known=r"\[OVERALL\], (?:RunTime|Throughput)",
    part=r"\[OVERALL\], ",
    fields=(
        Field("N", r"Command line: .{0,800}?(?:-threads |threadcount=)([0-9]+)"),
        Field("X", r"\[OVERALL\], Throughput\(ops/sec\), (\S+)"),
        Field("time:ms", r"\[OVERALL\], RunTime\(ms\), (\S+)"),
    ),
    rated=r"Command line: .{0,800}?-target [1-9]",
    finish=finish,
    needs={"X": "Throughput(ops/sec)"},
    work="operations",
    failures="{:,.0f} of {:,.0f} operations failed or found nothing",
    clients="threads",
)
recognises, parse = YCSB.recognises, YCSB.parse
