"""fio 2 to 3: what it prints, and its JSON. Each group of jobs is a run of its own: groups come one
after another (stonewall). X counts reads and writes; N adds up jobs times iodepth.
"""

import re

from nummodel.records.readers._declared import Field, Lines, Run, Tool
from nummodel.records.readers._lines import figure, short
from nummodel.records.readers._reading import Column, number

#: Where a job is described in the text, and where its figures begin: names, groups, numbers.
JOB = re.compile(
    r"(.{1,200}?): \((?:g=(?P<g>[0-9]+)\): rw=.{1,400}, iodepth=([0-9]+)"
    r"|groupid=(?P<groupid>[0-9]+), jobs=([0-9]+)\))"
)
#: The place and the group of a job in a document, and what it was given.
PLACE = re.compile(r"(jobs\.[0-9]+)\.")
GROUP = re.compile(r"(jobs\.[0-9]+)\.groupid: ([0-9]+)")
OPTION = re.compile(
    r"(jobs\.[0-9]+|global)[. ](?:job )?options\.(name|iodepth|numjobs): (.{1,200})"
)
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


def apart(lines: Lines) -> list[Lines]:
    """The lines of each group of jobs; lines of no group are of all."""
    group_of = {found[1]: found[2] for _, text in lines if (found := GROUP.match(text))}
    groups: dict[str, Lines] = {}
    head: Lines = []
    group = ""
    for line, text in lines:
        if job := JOB.match(text[:1000]):
            group = job["g"] or job["groupid"]
        elif found := PLACE.match(text):
            group = group_of.get(found[1], "0")
        elif text.startswith("global options"):
            group = ""
        (groups.setdefault(group, []) if group else head).append((line, text))
    return [head + some for some in groups.values()] or [lines]


def _load(run: Run) -> dict[str, float]:
    """Jobs times iodepth, and the iodepth if all jobs have the same."""
    given: dict[str, dict[str, str]] = {}
    depths: dict[str, float] = {}
    counts: dict[str, float] = {}
    for _, text in run.lines:
        if (job := JOB.match(text[:1000])) and job["g"]:
            depths[job[1]] = float(job[3])
        elif job:
            counts[job[1]] = counts.get(job[1], 0.0) + float(job[5])
        elif option := OPTION.match(text):
            given.setdefault(option[1], {})[option[2]] = option[3]
    every = given.pop("global", {})
    for options in ({**every, **own} for own in given.values()):
        name = options.get("name", "")
        depths[name] = number(options.get("iodepth", "1"), 0, "iodepth")
        counts[name] = number(options.get("numjobs", "1"), 0, "numjobs")
    found = {"N": sum(count * depths.get(name, 1.0) for name, count in counts.items())}
    if len({*depths.values()}) == 1:
        found["iodepth"] = max(depths.values())
    return found if found["N"] else {}


def finish(run: Run) -> None:
    """The sum over directions and groups, and the mean of their response times."""
    found = _directions(run)
    row = run.row
    row |= _load(run)
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
    fields=(Field("rate", r"(?:jobs\.[0-9]+\.job options|global options)\.rate_iops: ([0-9]+)"),),
    errors=r"fio: |.{1,200}: \(groupid=.{1,80} err= ?[1-9]",
    rated=r"(?:jobs\.[0-9]+\.job options|global options)\.rate(?:_iops)?: ",
    apart=apart,
    finish=finish,
    needs={"X": "IOPS"},
    own={"iodepth": Column("-", "requests that a job has under way, at most")},
    work="reads and writes",
    clients="jobs times iodepth",
    why=": an engine that waits for each request has one at a time, whatever iodepth is",
)
recognises, parse = FIO.recognises, FIO.parse
