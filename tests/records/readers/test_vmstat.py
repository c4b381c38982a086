"""The reader of vmstat against its own output, taken apart by split()."""

import random
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from quick import one_in

from nummodel.errors import InputError
from nummodel.records import readers
from nummodel.records.readers import vmstat
from nummodel.records.readers._reading import Malformed, Reading, plain

FOLDER = Path(__file__).parent / "recordings"
FILES = sorted(FOLDER.glob("vmstat-*.txt"))
CALLED = dict(r="runnable", b="blocked", cs="switches", us="user", sy="system", id="idle")
CALLED |= {"in": "interrupts", "wa": "iowait", "st": "steal", "gu": "guest"}


def cells_of(text):
    """Rows of an output as dictionaries by the names of its header."""
    lines = [line.split() for line in text.splitlines() if "procs" not in line]
    names = lines[0]
    return [dict(zip(names, cells, strict=False)) for cells in lines if cells[0] != "r"]


def agrees(reading, rows):
    """Whether the samples have all figures of all rows but the first."""
    assert len(reading.samples) == len(rows) - 1
    for (_, sample), row in zip(reading.samples.iterrows(), rows[1:], strict=True):
        for name, called in CALLED.items():
            if name in row:
                scale = 100 if name in "us sy id wa st gu".split() else 1
                assert sample[called] == int(row[name]) / scale
        used = sum(int(row.get(name, 0)) for name in ("us", "sy", "gu"))
        assert sample["U_cpu"] == min(used, 100) / 100
    means = reading.samples.drop(columns="t").mean()
    assert reading.table.iloc[0].to_dict() == pytest.approx(means.to_dict(), abs=1e-9)
    assert {*reading.samples, *reading.table} <= {*reading.columns}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_all_figures_of_a_recording(path):
    text = path.read_text()
    name, reading = readers.parsed(text, path)
    assert name == "vmstat"
    agrees(reading, cells_of(text))
    assert any("first row is left out" in sentence for sentence in reading.left_out)
    assert any("free" in sentence for sentence in reading.left_out)


def test_times_are_seconds_or_else_rows():
    reading = vmstat.parse((FOLDER / "vmstat-3-t-by-hand.txt").read_text())
    assert [*reading.samples["t"]] == [2, 4] and reading.columns["t"].unit == "s"
    reading = vmstat.parse((FOLDER / "vmstat-3-by-hand.txt").read_text())
    assert [*reading.samples["t"]] == [1, 2, 3] and reading.columns["t"].unit == "rows"
    assert any("t counts rows" in sentence for sentence in reading.left_out)


@pytest.mark.parametrize("rows", [10, 21])
def test_a_header_for_each_window_begins_no_run(rows):
    lines = (FOLDER / "vmstat-4.txt").read_text().splitlines(True)
    busy = "".join([*rows * lines[3:4], *lines[:2]])
    reading = vmstat.parse("".join([*lines[:3], *(rows - 1) * lines[3:4], *lines[:2], *2 * busy]))
    assert len(reading.samples) == 3 * rows - 1
    assert "first row is left out" in reading.left_out[0]


@pytest.mark.parametrize("between", ["", "\n", "Mi 28. Aug 16:02:01 CEST 2019\n", "Killed\n"])
@pytest.mark.parametrize("rows", [2, 5, 21])
def test_rows_since_boot_are_left_out_of_each_run(rows, between):
    lines = (FOLDER / "vmstat-4.txt").read_text().splitlines(True)
    run = "".join([*lines[:3], *(rows - 1) * lines[3:4]])
    reading = readers.parsed(run + between + run, "file")[1]
    assert reading.samples.drop(columns="t").drop_duplicates().shape[0] == 1
    assert len(reading.samples) == 2 * (rows - 1)
    assert "Samples are of 2 runs" in reading.left_out[0]


def test_runs_of_one_row_are_refused():
    once = "".join((FOLDER / "vmstat-4.txt").read_text().splitlines(True)[:3])
    with pytest.raises(Malformed, match="each of several runs has one row"):
        vmstat.parse(once + once)


def test_another_machine_is_refused():
    text = (FOLDER / "vmstat-4.txt").read_text()
    with pytest.raises(Malformed, match="another header than before"):
        vmstat.parse(text + "\n" + (FOLDER / "vmstat-4-active.txt").read_text())


def test_one_row_may_be_since_boot():
    text = "".join((FOLDER / "vmstat-4.txt").read_text().splitlines(True)[:3])
    reading = vmstat.parse(text)
    assert reading.samples is None and len(reading.table) == 1
    assert "since boot" in reading.left_out[0]


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        (" 4  1 ", " 4  x ", "3: b is 'x', expected a number"),
        (" 4  1 ", " 4 1 1 ", "3: 18 figures, expected 17"),
        (" 78 22 ", " 78 99 ", "3: shares add up to 177 %"),
        (" us sy ", " us us ", "vmstat"),
        (" wa ", " xx ", "vmstat"),
    ],
)
def test_wrong_cells_are_named(old, new, wrong):
    lines = (FOLDER / "vmstat-4.txt").read_text().splitlines(True)
    text = "".join([*lines[:2], *lines[3:]]).replace(old, new)
    with pytest.raises(InputError, match=wrong):
        readers.parsed(text, "file", "vmstat")


def test_other_modes_are_not_recognised():
    for text in (
        "disk- --reads--\n       total merged sectors ms\n",
        "  24684096 K total memory\n",
    ):
        assert not vmstat.recognises(text)
        with pytest.raises(Malformed):
            vmstat.parse(text)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_cut_files_are_read_or_refused(path):
    text = path.read_text()
    whole = vmstat.parse(text)
    for end in [*range(0, len(text), 97), *range(len(text) - 100, len(text))]:
        try:
            reading = vmstat.parse(text[:end])
        except Malformed:
            continue
        assert isinstance(reading, Reading)
        if reading.samples is not None:  # no figure is cut
            n = len(reading.samples)
            assert reading.samples.equals(whole.samples.iloc[:n])


@pytest.mark.slow
def test_hostile_texts_are_read_or_refused():
    chance = random.Random(1)
    for path in FILES:
        text = path.read_text()
        for _ in range(200):
            letters = list(text)
            for _ in range(chance.randint(1, 5)):
                letters[chance.randrange(len(letters))] = chance.choice("0 9\n\t-:.,x٣\x1c²")
            with suppress(Malformed):
                vmstat.parse("".join(letters))


def test_line_ends_of_windows():
    raw = (FOLDER / "vmstat-4-wide.txt").read_bytes()
    windows = vmstat.parse(plain(raw.replace(b"\n", b"\r\n"), "file"))
    assert windows.samples.equals(vmstat.parse(raw.decode()).samples)


def test_it_takes_linear_time():
    lines = (FOLDER / "vmstat-4.txt").read_text().splitlines(True)
    start = time.process_time()
    vmstat.parse("".join(lines[:2]) + 20_000 * lines[2])
    vmstat.parse(10_000 * "".join(lines[:4]))
    assert time.process_time() - start < 5


@pytest.mark.skipif(not shutil.which("vmstat"), reason="no vmstat here")
@pytest.mark.parametrize("options", one_in(4, ["", "-w -t", "-y -n", "-a -S M"]))
def test_the_tool_that_is_installed(options):
    command = ["vmstat", *options.split(), "1", "2"]
    text = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
    name, reading = readers.parsed(text, "vmstat")
    assert name == "vmstat"
    agrees(reading, cells_of(text))
