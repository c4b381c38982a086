"""fio 2 to 3: what it prints, and its JSON. X counts reads and writes; N is jobs times iodepth."""

import re

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import figure, short
from nummodel.records.readers._reading import Column

#: A direction of a group of jobs in the text, its mean, and its percentiles.
HEAD = re.compile(r"(read|write) *: .{0,200}?\b(?:IOPS|iops)= ?([0-9.]+[kM]?)")
MEAN = re.compile(r"(?:c?lat) \((nsec|usec|msec)\) ?: .{0,200}?avg= ?([0-9.]+)")
LATE = re.compile(r"([0-9.]{4,9})th=\[ *([0-9]+)\]")
PERCENTILES = re.compile(r"clat percentiles \((nsec|usec|msec)\)")
JSON = re.compile(
    r"(jobs\.[0-9]+\.(?:read|write))\.(?:(iops)|c?lat(_ns)?\.(?:mean|percentile\.([0-9.]+))): (\S+)"
)


def _cells(text: str, percent_unit: str) -> list[tuple[str, str, str]]:
    """The columns of a line with their figures and units; documents of fio 2 have microseconds."""
    if one := HEAD.match(text):
        return [("X", one[2], "")]
    if one := MEAN.match(text):
        return [("R", one[2], one[1])]
    if one := JSON.match(text):
        name = "X" if one[2] else f"R_p{short(one[4])}" if one[4] else "R"
        return [(name, one[5], "" if one[2] else "ns" if one[3] else "us")]
    late = LATE.findall(text) if text.startswith("|") and percent_unit else ()
    return [(f"R_p{short(percent)}", cell, percent_unit) for percent, cell in late]


def _directions(run: Run) -> list[dict[str, float]]:
    """The figures of each direction of each group; `lat` comes after `clat`, and has all of it."""
    found: dict[str, dict[str, float]] = {}
    key = percent_unit = ""
    for line, text in run.lines:
        text = text[:1000]
        if HEAD.match(text):
            key = f"line {line}"
        elif one := JSON.match(text):
            key = one[1]
        elif one := PERCENTILES.match(text):
            percent_unit = one[1]
        for name, cell, unit in _cells(text, percent_unit) if key else ():
            value = figure(cell, unit, line, name)
            if isinstance(value, float):
                found.setdefault(key, {})[name] = value
    return [one for one in found.values() if one.get("X")]


def finish(run: Run) -> None:
    """The sum over directions and groups, and the mean of their response times."""
    found = _directions(run)
    row = run.row
    row["N"] = row.pop("jobs", 1.0) * row.get("iodepth", 1.0)
    if not found:
        return
    row["X"] = round(sum(one["X"] for one in found), 6)
    if all("R" in one for one in found):
        row["R"] = sum(one["X"] * one["R"] for one in found) / row["X"]
    if len(found) == 1:
        row |= {n: R for n, R in found[0].items() if re.fullmatch("R_p(50|9[0-9.]+)", n)}
    else:
        run.notes.append("percentiles of reads and writes are left out")


FIO = Tool(
    begins=(r".{1,200}: \(g=0\): rw=", r".{1,200}: \(groupid=0, "),
    part=r".{1,200}: \(groupid=",
    ends=r"Run status group|Disk stats",
    keys=('"fio version"', '"jobs"'),
    fields=(
        Field("iodepth", r".{1,200}: \(g=0\): rw=.{1,400}, iodepth=([0-9]+)"),
        Field("jobs", r".{1,200}: \(groupid=0, jobs=([0-9]+)\)"),
        Field("iodepth", r"(?:jobs\.0\.job options|global options)\.iodepth: (\S+)"),
        Field("jobs", r"(?:jobs\.0\.job options|global options)\.numjobs: (\S+)"),
        Field("rate", r"(?:jobs\.0\.job options|global options)\.rate_iops: ([0-9]+)"),
    ),
    errors=r"fio: |.{1,200}: \(groupid=.{1,80} err= ?[1-9]",
    rated=r"(?:jobs\.0\.job options|global options)\.rate(?:_iops)?: ",
    finish=finish,
    needs={"X": "IOPS"},
    own={"iodepth": Column("-", "requests that a job has under way, at most")},
    work="reads and writes",
    clients="jobs times iodepth",
    why=": an engine that waits for each request has one at a time, whatever iodepth is",
)
recognises, parse = FIO.recognises, FIO.parse
