"""Readers of z/VM and OpenVMS, and what all readers of locks and latencies do with broken texts."""

import random
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from quick import one_in

from nummodel.records.readers import fcx265, monitor_modes
from nummodel.records.readers._reading import Malformed, plain

RECORDINGS = Path(__file__).parent / "recordings"
READERS = {
    "perf-lock": "perf_lock",
    "lock-stat": "lock_stat",
    "core-to-core": "core_to_core",
    "mlc": "mlc",
    "fcx265": "fcx265",
    "monitor-modes": "monitor_modes",
}
OWN = [p for p in sorted(RECORDINGS.iterdir()) if any(p.name.startswith(r + "-") for r in READERS)]


def reader(name):
    return import_module(f"nummodel.records.readers.{name}")


def reader_of(path):
    return reader(next(r for begin, r in READERS.items() if path.name.startswith(begin + "-")))


def recording(name):
    return (RECORDINGS / name).read_text()


def dotted(cell):
    return f"0{cell}" if cell.startswith(".") else cell


@pytest.mark.parametrize("name, kinds", [("5.3.txt", 3), ("7.3-by-hand.txt", 4)])
def test_every_figure_of_spin_locks(name, kinds):
    text = recording(f"fcx265-{name}")
    table = fcx265.parse(text).table
    lines = [line.split() for line in text.splitlines() if ">>Mean>> " in line]
    assert len(lines) == len(table) > 0
    powers = [0, -6, -2, 0][:kinds] * 3
    for cells, row in zip(lines, table.itertuples(index=False, name=None), strict=True):
        assert list(row[:2]) == cells[:2]
        expected = [float(f"{dotted(c)}e{p}") for c, p in zip(cells[2:], powers, strict=True)]
        assert list(row[2:]) == expected


def test_the_scheduler_lock_spins_on_all_processors():
    """Rate times mean spinning time is the share of the 32 processors of this run."""
    table = fcx265.parse(recording("fcx265-5.3.txt")).table.set_index("lock")
    lock = table.loc["SRMSLOCK"]
    assert lock.total_rate * lock.total_spin / lock.total_share == pytest.approx(32, rel=0.001)
    assert lock.exclusive_rate + lock.shared_rate == pytest.approx(lock.total_rate, abs=1)


def test_a_second_output_of_spin_locks_is_a_part():
    text = recording("fcx265-5.3.txt")
    table = fcx265.parse(text + text).table
    assert table.part.to_list() == 26 * [1] + 26 * [2]


def test_times_of_day_and_other_layouts_of_spin_locks():
    text = recording("fcx265-5.3.txt").replace(">>Mean>> SRMATDLK", "14:03:30 SRMATDLK")
    assert fcx265.parse(text).table.end[0] == "14:03:30"
    for old, new in (("SRMATDLK     61.0", "SRMATDLK "), ("61.0", "6x.0"), (">>Mean>>", "Mean")):
        with pytest.raises(Malformed):
            fcx265.parse(text.replace(old, new))


def test_modes_of_processors_as_bars():
    reading = monitor_modes.parse(recording("monitor-modes-7.3.txt"))
    table = reading.table.set_index("mode")
    assert table.current.to_list() == [0.47, 7.49, 4.75, 1.16, 0.21, 0.16, 1.8]
    assert table.current["MP Synchronization"] == 7.49
    assert set(table.node) == {"DECRDB"}
    assert set(table.time) == {"12-JAN-2001 09:00:06.64"}
    assert set(table.c_cpu) == {16}
    assert reading.left_out == ()


def test_several_screens_are_parts():
    bars = recording("monitor-modes-7.3.txt")
    one = bars.replace("Combined for 16 CPUs", "CPU 3")
    table = monitor_modes.parse(bars + "\n" + one).table
    assert table.part.to_list() == 7 * [1] + 7 * [2]
    assert set(table.cpu.dropna()) == {3}


def test_figures_of_unknown_kind_are_refused():
    text = recording("monitor-modes-7.3.txt")
    for old, new in (("| CUR |", "| NOW |"), ("749 |", "7x9 |"), ("Kernel Mode ", "Kernel Made ")):
        with pytest.raises(Malformed):
            monitor_modes.parse(text.replace(old, new))


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_only_its_reader_recognises_a_recording(path):
    known = [name for name in READERS.values() if reader(name).recognises(path.read_text())]
    assert known == [reader_of(path).__name__.rpartition(".")[2]]


@pytest.mark.parametrize(
    "path",
    sorted({p for p in RECORDINGS.iterdir() if p.is_file()} - set(OWN)),
    ids=lambda p: p.name,
)
def test_recordings_of_others_are_not_recognised(path):
    try:
        text = plain(path.read_bytes(), path.name)
    except ValueError:
        return
    assert not [name for name in READERS.values() if reader(name).recognises(text)]


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_tables_have_the_columns_they_describe(path):
    reading = reader_of(path).parse(path.read_text())
    assert list(reading.table) == list(reading.columns)
    assert all(sentence.endswith(".") and len(sentence) < 120 for sentence in reading.left_out)


@pytest.mark.parametrize("path", one_in(7, OWN), ids=lambda p: p.name)
def test_a_text_that_is_cut_anywhere(path):
    module, raw = reader_of(path), path.read_bytes()
    whole = module.parse(path.read_text()).table
    figures = whole.select_dtypes("number").columns
    for end in {*range(0, len(raw), 97), *range(max(0, len(raw) - 97), len(raw))}:
        text = raw[:end].decode(errors="ignore")
        module.recognises(text)
        try:
            table = module.parse(text).table
        except Malformed:
            continue
        # The rows of the whole text, the first of them: no figure lost digits.
        kept = [name for name in figures if name in table and name != "part"]
        assert table[kept].astype(float).equals(whole[kept][: len(table)].astype(float)), end


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_line_ends_of_windows(path):
    raw = path.read_bytes().replace(b"\n", b"\r\n")
    expected = reader_of(path).parse(path.read_text())
    found = reader_of(path).parse(plain(raw, path.name))
    assert found.table.equals(expected.table)
    assert found.left_out == expected.left_out


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_mutated_texts_raise_nothing_else(path):
    module, text, chance = reader_of(path), path.read_text()[:3000], random.Random(7)
    for _ in range(60):
        at, other = chance.randrange(len(text)), chance.choice("\n 09.:-,|$#<é\x85٣\u2028%")
        mutated = text[:at] + other + text[at + chance.randrange(3) :]
        module.recognises(mutated)
        try:
            module.parse(mutated)
        except Malformed as error:
            assert error.wrong


LONG = [
    " ",
    "1 ",
    "a:",
    "1,",
    "9",
    "[<",
    "contended ",
    "total wait ",
    "# ",
    " 1 1.00 us",
    ":",
    ". ",
]
LONG = [10**6 // len(part) * part for part in [*LONG, "(", "-", "Numa node ", "CUR "]]
LONG += ["Numa node" + " 1" * 500_000 + "x", "@" + LONG[0] + "x"]


@pytest.mark.parametrize("name", one_in(3, READERS.values()))
@pytest.mark.slow
def test_long_lines_take_little_time(name):
    module = reader(name)
    first = next(p for p in OWN if reader_of(p) is module).read_text()
    for hostile in LONG:
        for text in (hostile, first + hostile, first + hostile + "\n" + first):
            begin = time.process_time()
            module.recognises(text)
            with suppress(Malformed):
                module.parse(text)
            assert time.process_time() - begin < 2, hostile[:20]


@pytest.mark.parametrize("name", READERS.values())
def test_texts_of_nothing(name):
    for text in ("", "\n", "hello\n", "N,X\n1,2\n2,4\n", "\ufeff", "<script>"):
        assert not reader(name).recognises(text)
        with pytest.raises(Malformed):
            reader(name).parse(text)
