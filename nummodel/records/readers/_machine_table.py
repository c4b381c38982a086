"""The table and the samples of what was read from outputs of vmstat, mpstat, sar and iostat."""

from typing import TYPE_CHECKING

from nummodel.records.readers._machine import Output
from nummodel.records.readers._reading import Column, Malformed, Reading, column

if TYPE_CHECKING:
    import pandas as pd

#: Devices times reports, at most, unless each report has each device.
LARGEST = 1_000_000
#: Figures of each device that the samples have.
SAMPLED = ("U", "reads", "writes")
KEYS = {"cpu": "the processor, or all of them", "device": "the device"}
MISSING = "Some processors or devices are missing in some reports: they were offline or idle."
NO_SAMPLES = "Neither rows of all processors nor %util, r/s and w/s of devices: so no samples."


def reading(output: Output) -> Reading:
    """A row for each processor and device of each report, and a sample for each report, unless the
    only ones are since boot. Raises Malformed.
    """
    if not output.rows:
        raise Malformed(0, output.expected)
    alone = _leave_out_first(output)
    t, meaning = _times(output)
    table, columns = _table(output)
    samples = None if alone else _samples(table, columns, output)
    columns = {"t": meaning, **columns}
    processors = output.machine[1] if output.machine else ""
    for frame in (table, samples):
        if frame is not None:
            frame.insert(0, "t", [t[report] for report in frame.index])
            frame.index = range(len(frame))
            if processors:
                frame.insert(1, "c_cpu", float(processors))
                columns["c_cpu"] = column("c_cpu")
    if ignored := [*output.ignored]:
        some = "; ".join(ignored[:10]) + " and others" * (len(ignored) > 10)
        output.notes[f"Sections and columns left out: {some}."] = None
    return Reading(table, columns, tuple(output.notes), samples)


def _leave_out_first(output: Output) -> bool:
    """Leave out the rows of the first report of each run, and return whether these are the only
    ones and remain. Raises Malformed if several runs have no others.
    """
    word, runs = output.word, {output.reports[row["report"]].run for row in output.rows}
    firsts = {report.run: i for i, report in reversed([*enumerate(output.reports)])}.values()
    later = [row for row in output.rows if row["report"] not in firsts]
    dropped, said = len(output.rows) - len(later), ""
    if not later and len(runs) > 1:
        wrong = f"averages since boot only: each of several runs has one {word}"
        raise Malformed(0, f"{wrong}, expected runs such as {output.tool} 1")
    if not later:
        said = f"The only {word} may be the average since boot, so it is no sample."
    elif dropped and len(runs) > 1:
        first = f"the first {word} is left out of each, since boot unless -y was given"
        said = f"Samples are of {len(runs)} runs: {first}."
    elif dropped:
        said = f"The first {word} is left out: it is since boot, unless -y was given."
    elif len(runs) > 1:
        said = f"{len(runs)} runs are in this file: rows are of all of them."
    output.notes = {said: None, **output.notes} if said else output.notes
    output.rows = later or output.rows
    return not later


def _times(output: Output) -> tuple[list[float], Column]:
    """The second of each report since the first, or its number if the output has no times. Raises
    Malformed if only some have a time.
    """
    words, known = f"{output.word}s", [r.time for r in output.reports if r.time is not None]
    if len(known) == len(output.reports):
        return [float(time - known[0]) for time in known], column("t")
    if known:
        raise Malformed(0, f"only some {words} have a time, expected all or none")
    output.notes[f"Times of {words} are not known ({output.timed}), so t counts {words}."] = None
    numbers = [float(i) for i in range(len(output.reports))]
    return numbers, Column(words, f"number of the {output.word}, since the times are not known")


def _table(output: Output) -> "tuple[pd.DataFrame, dict[str, Column]]":
    """All rows by the number of their report, and what their columns mean."""
    import pandas as pd

    printed = pd.DataFrame(output.rows).set_index("report")
    table, columns = pd.DataFrame(index=printed.index), {}
    for kind in (kind for kind in output.figures if kind in printed):
        keys = printed[kind].dropna()
        if len(keys) < keys.nunique() * keys.index.nunique():
            output.notes[MISSING] = None
        table[kind], columns[kind] = printed[kind].fillna(""), Column("-", KEYS[kind])
        for figure in output.figures[kind]:
            if some := [name for name in figure.printed if name in printed]:
                total = sum(printed[name] * figure.printed[name] for name in some)
                table[figure.name] = (figure.start + total).round(10)
                columns[figure.name] = Column(figure.unit, figure.meaning)
    if "U_cpu" in table:
        table["U_cpu"] = table["U_cpu"].clip(0, 1)
    return table, columns


def _samples(
    table: "pd.DataFrame", columns: dict[str, Column], output: Output
) -> "pd.DataFrame | None":
    """A row for each report: shares of all processors, and figures of each device."""
    import pandas as pd

    parts = []
    if "cpu" in table and "all" in set(table["cpu"]):
        shares = [f.name for f in output.figures["cpu"] if f.name in table]
        parts.append(table.loc[table["cpu"] == "all", shares])
    devices = table[table["device"] != ""] if "device" in table else table[:0]
    if len(devices):
        names, reports = devices["device"].nunique(), devices.index.nunique()
        if names * reports > max(LARGEST, 2 * len(devices)):
            raise Malformed(0, f"{names} devices come and go, expected the same in each report")
        if "cpu" in set(devices["device"]):
            raise Malformed(0, "a device has the name cpu, expected the name of a disk")
    for name in (name for name in SAMPLED if name in devices):
        wide = devices.set_index("device", append=True)[name]
        wide = wide[~wide.index.duplicated(keep="last")].unstack("device")
        parts.append(wide[[*dict.fromkeys(devices["device"])]].add_prefix(f"{name}_"))
        for device in wide:
            unit, meaning = columns[name]
            columns[f"{name}_{device}"] = Column(unit, f"{meaning}, of {device}")
    if parts:
        return pd.concat(parts, axis=1).sort_index()
    output.notes[NO_SAMPLES] = None
    return None
