"""The readers of mpstat, sar and iostat against their own output, taken apart by split()."""

import json
import math
import random
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from quick import one_in

from nummodel.errors import InputError
from nummodel.records import readers
from nummodel.records.readers import iostat, sysstat
from nummodel.records.readers._reading import Malformed, Reading, plain

FOLDER = Path(__file__).parent / "recordings"
FILES = sorted(p for tool in ("mpstat", "sar-", "sadf", "iostat") for p in FOLDER.glob(f"{tool}*"))
REFUSED = {"iostat-12.6-xh", "mpstat-12.6-nodes"}
READ = [path for path in FILES if path.stem not in REFUSED]
#: Columns of the table, with the unit they are printed in and the names they may have there.
DEVICE = {
    "U": (0.01, "%util util"),
    "reads": (1, "r/s"),
    "writes": (1, "w/s"),
    "discards": (1, "d/s"),
    "flushes": (1, "f/s"),
    "transfers": (1, "tps"),
    "queue": (1, "aqu-sz avgqu-sz"),
    "reads_merged": (1, "rrqm/s"),
    "writes_merged": (1, "wrqm/s"),
    "discards_merged": (1, "drqm/s"),
    "merged": (1, "rqm/s"),
    "reads_merged_share": (0.01, "%rrqm rrqm"),
    "writes_merged_share": (0.01, "%wrqm wrqm"),
    "discards_merged_share": (0.01, "%drqm drqm"),
    "time": (0.001, "await"),
    "read_time": (0.001, "r_await"),
    "write_time": (0.001, "w_await"),
    "discard_time": (0.001, "d_await"),
    "flush_time": (0.001, "f_await"),
    "read_size": (1024, "rareq-sz"),
    "write_size": (1024, "wareq-sz"),
    "discard_size": (1024, "dareq-sz"),
}


def as_printed(cells):
    return {name.lstrip("%"): float(cell.replace(",", ".")) for name, cell in cells.items()}


def rows_of_text(text):
    """Rows of processors and of devices as (key, figures), without averages."""
    cpus, devices, names, first = [], [], [], ""
    for line in text.splitlines():
        cells = re.sub(r"(\d:\d\d) [AP]M", r"\1", line).split()
        if not cells or cells[1:2] in (["LINUX"], ["COM"]):
            continue
        if cells[0] in ("avg-cpu:", "Device:", "Device"):
            first, names = cells[0], cells[1:]
        elif len(cells) > 2 and cells[1] in ("CPU", "NODE"):
            first, names = cells[1], cells[2:]
        elif re.fullmatch("[a-z]+[-0-9]*", cells[0]) and first.startswith("Device"):
            devices.append((cells[0], dict(zip(names, cells[1:], strict=True))))
        elif len(cells) == len(names) and first == "avg-cpu:":
            cpus.append(("all", dict(zip(names, cells, strict=True))))
        elif first == "CPU" and "%idle" in names and re.match(r"\d\d:\d\d:\d\d", cells[0]):
            shares = [name for name in names if name.startswith("%")]
            if re.fullmatch("all|[0-9]+", cells[1]) and len(cells) >= len(shares) + 2:
                cpus.append((cells[1], dict(zip(shares, cells[-len(shares) :], strict=True))))
            elif len(cells) > 4:
                first = ""
        elif len(cells) > 2:
            first = ""
    return cpus, devices


def rows_of_json(text):
    cpus, devices = [], []
    for report in json.loads(text)["sysstat"]["hosts"][0]["statistics"]:
        for row in [*report.get("cpu-load", []), *filter(None, [report.get("avg-cpu")])]:
            cpus.append((row.pop("cpu", "all"), {name: str(cell) for name, cell in row.items()}))
        for row in report.get("disk", []):
            devices.append((row.pop("disk_device"), {n: str(cell) for n, cell in row.items()}))
    return cpus, devices


def rows_of(text):
    """Rows of an output, but for the first report of iostat and processors that are offline."""
    cpus, devices = rows_of_json(text) if text.startswith("{") else rows_of_text(text)
    iostat = devices or "avg-cpu" in text
    if iostat and max(text.count("avg-cpu"), text.count("Device")) > 1:
        seen = [key for key, _ in devices]
        count = next((i for i, key in enumerate(seen) if key in seen[:i]), 0)
        cpus, devices = cpus[1:], devices[count:]
    cpus = [(key, as_printed(cells)) for key, cells in cpus]
    return [row for row in cpus if any(row[1].values())], devices


def agrees(reading, text):
    """Whether the table has all figures, and the samples those of all processors and devices."""
    cpus, devices = rows_of(text)
    table = reading.table
    of_cpus = table[table["cpu"] != ""] if "cpu" in table else table[:0]
    of_devices = table[table["device"] != ""] if "device" in table else table[:0]
    assert len(of_cpus) == len(cpus) and len(of_devices) == len(devices) and len(table)
    for (_, row), (key, printed) in zip(of_cpus.iterrows(), cpus, strict=True):
        assert row["cpu"] == key
        shares = {name: share / 100 for name, share in printed.items()}
        user = sum(shares.get(name, 0) for name in ("usr", "user", "nice"))
        system = sum(shares.get(name, 0) for name in ("sys", "system", "irq", "soft"))
        assert row["user"] == pytest.approx(user, abs=1e-9)
        assert row["system"] == pytest.approx(system, abs=1e-9)
        unused = shares["idle"] + shares["iowait"] + shares["steal"]
        assert row["U_cpu"] == pytest.approx(max(0, 1 - unused), abs=1e-9)
        for name in shares.keys() & {*"nice irq soft iowait steal guest gnice idle".split()}:
            assert row[name] == round(shares[name], 10)
    for (_, row), (key, printed) in zip(of_devices.iterrows(), devices, strict=True):
        assert row["device"] == key
        printed = {name: float(cell.replace(",", ".")) for name, cell in printed.items()}
        for name, (scale, names) in DEVICE.items():
            figures = [printed[n] for n in names.split() if n in printed]
            assert bool(figures) == (name in row), name
            if figures:
                assert row[name] == pytest.approx(figures[0] * scale, abs=1e-9)
        for kind, letter, word in (("read", "r", "read"), ("write", "w", "wrtn")):
            for unit, scale in (("kB", 1024), ("MB", 1024**2), ("sec", 512)):
                for called in (f"{letter}{unit}/s", f"{unit}_{word}/s"):
                    if called in printed:
                        assert row[f"{kind}_bytes"] == pytest.approx(printed[called] * scale)
    assert {*table, *(() if reading.samples is None else reading.samples)} == {*reading.columns}
    assert all(math.isfinite(value) for value in table["t"]) and table["t"].is_monotonic_increasing
    if reading.samples is not None and cpus:
        of_all = of_cpus[of_cpus["cpu"] == "all"]
        assert [*reading.samples["U_cpu"]] == [*of_all["U_cpu"]]
        assert [*reading.samples["t"]] == [*of_all["t"]]
    for _, row in of_devices.iterrows() if reading.samples is not None else ():
        sample = reading.samples[reading.samples["t"] == row["t"]].iloc[0]
        for name in {"U", "reads", "writes"} & {*row.index}:
            assert sample[f"{name}_{row['device']}"] == row[name]


def parse(text):
    """What the only reader of a text finds."""
    return (iostat if iostat.recognises(text) else sysstat).parse(text)


def reading_of(name):
    return parse((FOLDER / name).read_text())


@pytest.mark.parametrize("path", READ, ids=lambda p: p.name)
def test_all_figures_of_a_recording(path):
    text = path.read_text()
    name, reading = readers.parsed(text, path)
    assert name == ("iostat" if path.name.startswith("iostat") else "sysstat")
    agrees(reading, text)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_others_are_refused(name):
    with pytest.raises(InputError, match=r"\(iostat\)" if "iostat" in name else r"\(sysstat\)"):
        readers.parsed((FOLDER / f"{name}.txt").read_text(), name)


@pytest.mark.parametrize(
    ("name", "t", "unit"),
    [
        ("sar-u.txt", [10, 20, 30, 40], "s"),
        ("mpstat-10-offline-by-hand.txt", [1, 2], "s"),
        ("mpstat-12.6-ampm.txt", [1, 2], "s"),
        ("mpstat-12.6-all.json", [1, 2, 3], "s"),
        ("sadf-12.6.json", [1, 2, 3], "s"),
        ("mpstat-A.json", [1], "reports"),
        ("iostat-12.6-x.txt", [1, 2], "reports"),
        ("iostat-12.6-xt-ampm.txt", [1, 2], "s"),
        ("iostat-12.6-iso.txt", [1], "s"),
        ("iostat-10-x-by-hand.txt", [1, 3], "s"),
        ("iostat-8-sectors-by-hand.txt", [10], "s"),
        ("sar-10-restart-by-hand.txt", [600, 1200, 2400, 3000], "s"),
    ],
)
def test_times_since_the_start(name, t, unit):
    reading = reading_of(name)
    assert [*reading.samples["t"]] == t
    assert reading.columns["t"].unit == unit


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sar-u.txt", "offline"),
        ("sar-12.6-u.txt", "printed averages are left out"),
        ("mpstat-10-offline-by-hand.txt", "Rows of zeros"),
        ("sar-10-restart-by-hand.txt", "restarts and comments"),
        ("mpstat-A.json", "node-load; sum-interrupts; individual-interrupts"),
        ("mpstat-12.6-A.txt", "CPU intr/s"),
        ("mpstat-12.6-boot.txt", "since boot"),
        ("iostat-12.6-x.txt", "first report is left out"),
        ("iostat-10-x-by-hand.txt", "svctm"),
        ("iostat-10-x-by-hand.txt", "missing in some reports"),
        ("mpstat-12.6-topology.txt", "CORE; SOCK; NODE"),
    ],
)
def test_what_is_left_out_is_said(name, said):
    assert said in " ".join(reading_of(name).left_out)


def test_processors_are_those_of_the_banner():
    assert {*reading_of("sar-u.txt").samples["c_cpu"]} == {9}
    assert {*reading_of("mpstat-A.json").table["c_cpu"]} == {9}
    assert "c_cpu" not in reading_of("iostat-8-sectors-by-hand.txt").columns


def test_a_report_since_boot_is_no_sample():
    lines = (FOLDER / "iostat-12.6-x.txt").read_text().splitlines(True)
    reading = iostat.parse("".join(lines[:7]))
    assert reading.samples is None and len(reading.table) == 2
    assert reading_of("mpstat-12.6-boot.txt").samples is None


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("13:20:29          2 ", "13:20:29          2 0.1 ", "16: 7 figures, expected 6"),
        ("13:20:29          2      3.27", "13:20:29          2      3.2x", "16: user is '3.2x'"),
        (
            "13:20:29          2      3.27",
            "13:20:29          2     93.27",
            "16: shares add up to 1",
        ),
        ("13:20:29          2 ", "13:20:09          2 ", "16: the time goes back"),
        ("13:20:29          2 ", "13:60:29          2 ", "16: the time is '13:60:29'"),
        ("13:20:29          2 ", "xx:20:29          2 ", "16: 'xx:20:29' begins no line"),
        ("%steal     %idle", "%idle     %idle", "twice"),
        ("%idle", "%idel", "no shares of processors"),
    ],
)
def test_wrong_lines_are_named(old, new, wrong):
    text = (FOLDER / "sar-u.txt").read_text()
    assert old in text
    with pytest.raises(InputError, match=wrong):
        readers.parsed(text.replace(old, new), "file", "sysstat")


@pytest.mark.parametrize(
    "text",
    [
        '{"sysstat": {"hosts": []}}',
        '{"sysstat": {"hosts": [{"statistics": 1}]}}',
        '{"sysstat": {"hosts": [{"statistics": [1]}]}}',
        '{"sysstat": {"hosts": [{"statistics": [{"cpu-load": [{"cpu": "all", "idle": NaN}]}]}]}}',
        '{"sysstat": {"hosts": [{"statistics": [{"avg-cpu": {"idle": 1e999}}]}]}}',
        '{"sysstat": {"hosts": [{"statistics": [{"avg-cpu": {}}]}]}}',
        '{"sysstat": {"hosts": [{"statistics": [{"avg-cpu": {"usr": 2,15}}]}]}}',
        '{"sysstat": ' + 100_000 * "[",
        '{"sysstat": ' + 100_000 * "1",
        '{"sysstat": "' + "\\ud800" + '"}',
    ],
)
def test_json_of_others_is_refused(text):
    assert sysstat.recognises(text) + iostat.recognises(text) == 1
    with pytest.raises(Malformed):
        parse(text)


def test_samples_are_of_all_runs():
    text = (FOLDER / "mpstat-12.6.txt").read_text()
    reading = sysstat.parse(text + "\n" + text.replace("07:40:", "07:50:"))
    assert [*reading.samples["t"]] == [1, 2, 3, 601, 602, 603]
    assert "2 runs are in this file: rows are of all of them." in reading.left_out
    assert len(sysstat.parse(text + text).samples) == 6  # the next day
    since = (FOLDER / "mpstat-12.6-boot.txt").read_text()
    assert len(sysstat.parse(since + text).samples) == 3
    with pytest.raises(Malformed, match="averages since boot only"):
        sysstat.parse(since + since)


@pytest.mark.parametrize("name", ["iostat-12.6-x", "iostat-12.6-xt", "iostat-12.6-c"])
def test_reports_since_boot_are_left_out_of_each_run(name):
    text = (FOLDER / f"{name}.txt").read_text()
    once, twice = iostat.parse(text).samples, iostat.parse(text + text).samples
    assert twice.drop(columns="t").values.tolist() == 2 * once.drop(columns="t").values.tolist()
    banner, first = text.split("\n\n", 1)
    alone = banner + "\n\n" + first[: len(first) // 3]
    with pytest.raises(Malformed, match="since boot"):
        iostat.parse(alone + "\n" + alone)


@pytest.mark.parametrize("name", ["iostat-12.6-x", "iostat-12.6-xt"])
def test_a_time_of_somebody_else_begins_no_report(name):
    text = (FOLDER / f"{name}.txt").read_text()
    expected = iostat.parse(text + text).samples
    stamp = "2019-08-28 16:02:01\n"
    assert iostat.parse(stamp + text + stamp + text).samples.equals(expected)


def test_other_headers_and_machines_are_refused():
    text, other = (FOLDER / "iostat-12.6-x.txt").read_text(), "iostat-12.6-xs.txt"
    with pytest.raises(Malformed, match="another header"):
        iostat.parse(text + (FOLDER / other).read_text())
    for reader, whole in ((iostat, text), (sysstat, (FOLDER / "mpstat-12.6.txt").read_text())):
        with pytest.raises(Malformed, match="another machine"):
            reader.parse(whole + "\n" + whole.replace("(2 CPU)", "(4 CPU)"))


@pytest.mark.parametrize("name", ["iostat-12.6-x", "iostat-12.6-xt", "iostat-12.6-xs"])
def test_a_cut_report_is_left_out(name):
    text = (FOLDER / f"{name}.txt").read_text()
    expected = iostat.parse(text).table
    header = text.index("avg-cpu")
    report = text[header : text.index("Device")]
    for cut in (report, report[:30], report[:60], report + "Device   r/s   w/"):
        reading = iostat.parse(text + cut)
        assert reading.table.equals(expected)
        assert any("cut off" in sentence for sentence in reading.left_out)


@pytest.mark.parametrize("path", one_in(7, READ), ids=lambda p: p.name)
def test_cut_files_are_read_or_refused(path):
    text = path.read_text()
    whole = parse(text).table
    for end in [*range(0, len(text), 97), *range(max(0, len(text) - 60), len(text))]:
        try:
            reading = (iostat if iostat.recognises(text) else sysstat).parse(text[:end])
        except Malformed:
            continue
        assert isinstance(reading, Reading)
        if reading.samples is not None and len(reading.table.columns) == len(whole.columns):
            assert reading.table.equals(whole.iloc[: len(reading.table)])


def read_or_refused(text):
    """Both readers may get any text, but not both may recognise it."""
    assert not (sysstat.recognises(text) and iostat.recognises(text))
    for reader in (sysstat, iostat):
        with suppress(Malformed):
            reader.parse(text)


@pytest.mark.parametrize("path", one_in(7, READ), ids=lambda p: p.name)
def test_mutated_files_are_read_or_refused(path):
    chance = random.Random(path.name)
    text = path.read_text()
    for _ in range(60):
        letters = list(text)
        for _ in range(chance.randint(1, 6)):
            letters[chance.randrange(len(letters))] = chance.choice('0 9\n\t-:.,x%"{}[]٣\x1c²')
        read_or_refused("".join(letters))
        lines = text.splitlines(True)
        for _ in range(3):
            i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        read_or_refused("".join(lines))


@pytest.mark.slow
def test_mixed_files_are_read_or_refused():
    chance = random.Random(1)
    texts = [path.read_text().splitlines(True) for path in FILES]
    for _ in range(1000):
        lines = [*chance.choice(texts)]
        for _ in range(chance.randint(1, 3)):
            other = chance.choice(texts)
            start = chance.randrange(len(other))
            at = chance.randrange(len(lines))
            lines[at : at + chance.randint(0, 2)] = other[start : start + chance.randint(1, 4)]
        read_or_refused("".join(lines))


@pytest.mark.parametrize("name", ["mpstat-12.6.txt", "iostat-12.6-xt.txt"])
def test_a_cut_line_is_said(name):
    text = (FOLDER / name).read_text().rstrip()
    whole, cut = parse(text), parse(text[:-3])
    assert "cut off" not in " ".join(whole.left_out) and "cut off" in " ".join(cut.left_out)
    assert parse(text + "\n").table.equals(whole.table)


def test_devices_without_their_use_are_no_samples():
    lines = (FOLDER / "iostat-12.6.txt").read_text().splitlines(True)
    reading = iostat.parse("".join([*lines[:2], *lines[5:9], *lines[12:]]))
    assert reading.samples is None and reading.table["transfers"].tolist() == [5288]


def test_line_ends_of_windows():
    raw = (FOLDER / "iostat-12.6-xt.txt").read_bytes()
    windows = iostat.parse(plain(raw.replace(b"\n", b"\r\n"), "file"))
    assert windows.table.equals(iostat.parse(raw.decode()).table)


def test_it_takes_linear_time():
    banner, _, header, row, *_ = (FOLDER / "iostat-12.6-xd.txt").read_text().splitlines(True)
    device, rest = row.split(None, 1)
    many = "".join(f"{device}{i} {rest}" for i in range(5000))
    once = "".join(f"{header}{device}{i} {rest}\n" for i in range(5000))
    start = time.process_time()
    assert len(iostat.parse(banner + 2 * f"\n{header}{many}").table) == 5000
    with pytest.raises(Malformed, match="come and go"):
        iostat.parse(banner + once)
    with pytest.raises(Malformed):
        iostat.parse(banner + 100_000 * header)
    iostat.recognises(100_000 * "Linux )")
    sysstat.recognises(100_000 * "Linux )")
    assert time.process_time() - start < 10


INSTALLED = ["mpstat 1 2", "mpstat -P ALL 1 1", "mpstat -A 1 1", "mpstat -o JSON -P ALL 1 2"]
INSTALLED += ["sar -u 1 2", "sar -u ALL -P ALL 1 1", "iostat -x 1 2", "iostat -x -t -m 1 2"]
INSTALLED += ["iostat -x -o JSON 1 2", "iostat -d -x -s -t 1 2", "iostat -c 1 2"]


@pytest.mark.parametrize("command", INSTALLED)
def test_the_tool_that_is_installed(command):
    if not shutil.which(command.split()[0]):
        pytest.skip("not installed")
    done = subprocess.run(command.split(), capture_output=True, text=True, env={"LC_ALL": "C"})
    name, reading = readers.parsed(done.stdout, command)
    assert name == ("iostat" if command.startswith("iostat") else "sysstat")
    agrees(reading, done.stdout)
