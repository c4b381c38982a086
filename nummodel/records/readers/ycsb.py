"""YCSB 0.x: the summary of each run. R is the mean over all operations."""

import re
from collections import defaultdict

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import figure

OPERATION = re.compile(
    r"\[([A-Z][A-Z_-]{1,40})\], (Operations|AverageLatency\(us\)|Return=\w+|"
    r"[0-9.]+(?:th)?PercentileLatency\(us\)), ([0-9.eE+-]+)$"
)


def finish(run: Run) -> None:
    """The mean response time, and failures, from the lines of each kind of operation."""
    kinds: dict[str, dict[str, float]] = defaultdict(dict)
    for line, text in run.lines:
        found = OPERATION.match(text[:200])
        if found and found[1] != "CLEANUP":
            value = figure(found[3], "", line, found[2])
            kinds[found[1]][found[2]] = value if isinstance(value, float) else 0.0
    mean = "AverageLatency(us)"
    work = {k: v for k, v in kinds.items() if v.get("Operations") and not k.endswith("-FAILED")}
    count = sum(v["Operations"] for v in work.values())
    failed = sum(v.get("Operations", 0.0) for k, v in kinds.items() if k.endswith("-FAILED"))
    bad = (v[n] for v in work.values() for n in v if n.startswith("Return=") and n[7:] != "OK")
    if count:
        run.row |= {"events": count, "failed": max(failed, sum(bad))}
    if count and all(mean in v for v in work.values()):
        total = sum(v["Operations"] * v[mean] for v in work.values())
        run.row["R"] = round(total / count * 1e-6, 12)
    if len(work) == 1:
        for name, value in next(iter(work.values())).items():
            if late := re.match(r"([0-9.]+)(?:th)?Percentile", name):
                run.row[f"R_p{late[1]}"] = round(value * 1e-6, 12)


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
