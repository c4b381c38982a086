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
    r"jobs\.([0-9]+)\.(read|write)\.(iops|c?lat_ns\.mean|clat_ns\.percentile\.([0-9.]+)|"
    r"c?lat\.mean|clat\.percentile\.([0-9.]+)): (\S+)"
)


def _of_text(run: Run) -> list[dict[str, float]]:
    """The figures of each direction of each group; `lat` comes after `clat`, and has all of it."""
    found: list[dict[str, float]] = []
    unit = ""
    for line, text in run.lines:
        text = text[:1000]
        if head := HEAD.match(text):
            found.append({"X": figure(head[2], "", line, "IOPS")})  # type: ignore[dict-item]
        elif (mean := MEAN.match(text)) and found:
            found[-1]["R"] = figure(mean[2], mean[1], line, "latency")  # type: ignore[assignment]
        elif percentiles := PERCENTILES.match(text):
            unit = percentiles[1]
        elif text.startswith("|") and found and unit:
            for percent, cell in LATE.findall(text):
                found[-1][f"R_p{short(percent)}"] = figure(cell, unit, line, "percentile")  # type: ignore[assignment]
    return found


def _of_json(run: Run) -> list[dict[str, float]]:
    """As `_of_text`, of a document; fio 2 has microseconds."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line, text in run.lines:
        if not (one := JSON.match(text)):
            continue
        percent = one[4] or one[5]
        name = f"R_p{short(percent)}" if percent else "X" if one[3] == "iops" else "R"
        unit = "" if name == "X" else "ns" if "_ns" in one[3] else "us"
        value = figure(one[6], unit, line, name)
        row = found.setdefault((one[1], one[2]), {})
        if isinstance(value, float) and (name != "R" or not one[3].startswith("c")):
            row[name] = value
    return [*found.values()]


def finish(run: Run) -> None:
    """The sum over directions and groups, and the mean of their response times."""
    found = [one for one in _of_text(run) or _of_json(run) if one.get("X")]
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
