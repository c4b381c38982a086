"""Readers of waits for locks: perf lock contention and /proc/lock_stat."""

import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from nummodel.records.readers import lock_stat, perf_lock
from nummodel.records.readers._reading import Malformed

RECORDINGS = Path(__file__).parent / "recordings"
UNITS = {"ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}
HEAD = " contended   total wait     max wait     avg wait         type   caller\n\n"


def recording(name):
    return (RECORDINGS / name).read_text()


def time(cell, unit):
    return float(Decimal(cell) * Decimal(UNITS[unit]))


TEXTS = [p.name for p in sorted(RECORDINGS.glob("perf-lock-*")) if not re.search("csv|min", p.name)]


@pytest.mark.parametrize("name", TEXTS)
def test_every_figure_of_a_text_of_perf(name):
    found = perf_lock.parse(recording(name)).table
    rows = [line.split() for line in recording(name).splitlines()]
    rows = [r for r in rows if len(r) > 7 and r[2] in UNITS and r[4] in UNITS]
    assert len(found) == len(rows) > 0
    for cells, row in zip(rows, found.to_dict("records"), strict=True):
        assert row["contended"] == int(cells[0])
        assert row["total_wait"] == time(*cells[1:3])
        assert row["max_wait"] == time(*cells[3:5])
        assert row["avg_wait"] == time(*cells[5:7])


def test_samples_have_parts_and_their_columns():
    reading = perf_lock.parse(recording("perf-lock-samples.txt"))
    assert reading.table.groupby("part").size().to_list() == [9, 9, 6]
    assert list(reading.table) == list(reading.columns)
    assert reading.table.max_wait[0] == 1.364e-05
    assert reading.table.caller[9] == "__tick_broadcast_oneshot_control+0xc0"
    assert list(reading.table.loc[19, ["address", "symbol", "type"]]) == [
        "ff" + "ff98d7031fb498", "&task_struct", "mutex"
    ]  # fmt: skip
    assert reading.left_out == ("Lines outside of the tables, such as commands, are left out: 6.",)


def test_each_excerpt_alone_has_no_part():
    parts = recording("perf-lock-samples.txt").split("## ")[1:]
    tables = [perf_lock.parse("## " + part).table for part in parts]
    assert [len(table) for table in tables] == [9, 9, 6]
    assert not any("part" in table for table in tables)


def test_csv_of_perf_is_in_nanoseconds():
    lines = recording("perf-lock-6.5-csv.txt").splitlines()[1:]
    found = perf_lock.parse(recording("perf-lock-6.5-csv.txt")).table.to_dict("records")
    for line, row in zip(lines, found, strict=True):
        cells = line.split(", ")
        assert row["contended"] == int(cells[0])
        assert row["total_wait"] == float(cells[1] + "e-9")
        assert row["max_wait"] == float(cells[2] + "e-9")
        assert row["avg_wait"] == float(cells[3] + "e-9")
        assert [row["type"], row["caller"]] == cells[4:]


def test_columns_that_were_asked_for():
    lines = recording("perf-lock-6.1-min.txt").splitlines()
    table = perf_lock.parse(recording("perf-lock-6.1-min.txt")).table
    rows = [line.split() for line in lines[2:]]
    assert len(table) == len(rows) == 6
    for cells, row in zip(rows, table.to_dict("records"), strict=True):
        assert row["contended"] == int(cells[0])
        names = ("min_wait", "avg_wait", "total_wait")
        assert [row[n] for n in names] == [time(*cells[i : i + 2]) for i in (1, 3, 5)]


def test_separators_in_names_and_stack_traces():
    locks = perf_lock.parse(recording("perf-lock-csv-lock-by-hand.txt"))
    assert locks.table.symbol.to_list() == ["&task_struct; odd", ""]
    assert locks.table.type.to_list() == ["mutex", "mutex"]
    assert locks.table.min_wait.to_list() == [1.9e-07, 9.29e-07]
    stacks = perf_lock.parse(recording("perf-lock-csv-stack-by-hand.txt"))
    assert stacks.table.caller.to_list() == ["futex_wake+0x10", "rcu_core+0xd4"]
    assert stacks.left_out == ("Stack traces at the end of rows are left out: 1.",)


def test_tasks_owners_locks_and_groups():
    task = perf_lock.parse(recording("perf-lock-6.2-task-by-hand.txt")).table
    assert (task.pid[4], task.comm[4]) == (1809271, "MediaSu~isor #2")
    owner = perf_lock.parse(recording("perf-lock-6.3-owner.txt")).table
    assert owner.pid.to_list() == [-1, 1583145, 1583144, 5068]
    lock = perf_lock.parse(recording("perf-lock-6.3-lock.txt")).table
    assert lock.symbol.to_list() == ["", "mmap_lock", "mmap_lock", "", "jiffies_lock", ""]
    group = perf_lock.parse(recording("perf-lock-6.7-cgroup.txt")).table
    assert group.cgroup[1] == "/"


def test_stacks_and_the_footer_are_left_out_and_told():
    told = " ".join(perf_lock.parse(recording("perf-lock-6.2-stacks-by-hand.txt")).left_out)
    assert "call stacks are left out: 5." in told
    assert "failed to collect are left out: 8." in told


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a "b" c', "  led", "é|,;", "x "])
def test_names_are_kept_as_they_are(name):
    task = HEAD.replace("        type   caller", "         pid   comm")
    text = f"{task}         1      1.50 us      1.50 us      1.50 us           15   {name}\n"
    assert perf_lock.parse(text).table.comm.to_list() == [name]


def test_units_of_minutes_and_hours():
    row = "         2     10.50 m       1.50 h       5.25 m        mutex   f+0x1\n"
    table = perf_lock.parse(HEAD + row).table
    assert table.loc[0, ["total_wait", "max_wait", "avg_wait"]].to_list() == [630, 5400, 315]


@pytest.mark.parametrize(
    "row",
    ["  x  1.5 us  1.5 us  1.5 us  mutex  f", "  1  1.5 kg  1.5 us  1.5 us  mutex  f",
     "  1  -1.5 us  1.5 us  1.5 us  mutex  f", "  1  1.5 us  1.5 us", "unknown"],
)  # fmt: skip
def test_rows_that_are_not_understood_are_malformed(row):
    with pytest.raises(Malformed) as error:
        perf_lock.parse(HEAD + row + "\n")
    assert error.value.line in (0, 3)


def test_a_header_that_has_a_name_twice_is_refused():
    text = (RECORDINGS / "perf-lock-csv-stack-by-hand.txt").read_text()
    for name in ("type", "total wait"):
        with pytest.raises(Malformed, match="expected cells of"):
            perf_lock.parse(text.replace("max wait", name, 1))


def test_perf_of_this_machine(tmp_path):
    """Locks of a tenth of a second of messages, where the kernel allows to record them."""
    if not shutil.which("perf"):
        pytest.skip("no perf")

    def perf(*arguments):
        command = ["perf", "lock", *arguments]
        # perf 6.1 prints its tables on stderr.
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.run(command, **both, timeout=60, cwd=tmp_path)

    workload = "perf bench sched messaging -g 1 -l 50".split()
    recorded = perf("record", "-o", "locks.data", "--", *workload)
    shown = perf("contention", "-i", "locks.data")
    if recorded.returncode or shown.returncode or not re.search("^ +[0-9]", shown.stdout, re.M):
        pytest.skip("perf recorded no lock here")
    for options in ([], ["-v"], ["-t"], ["-F", "contended,wait_min,wait_total,avg_wait"]):
        shown = perf("contention", "-i", "locks.data", *options)
        reading = perf_lock.parse(shown.stdout)
        rows = re.findall(r"^ +[0-9]+ +[0-9.]+ [um]?[ns]?s ", shown.stdout, re.M)
        assert len(reading.table) == len(rows) > 0
        assert not any("avg wait" in sentence for sentence in reading.left_out)


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("lock-stat-*")), ids=lambda p: p.name)
def test_every_figure_of_lock_stat(path):
    found = lock_stat.parse(path.read_text()).table
    rows = [line.split(":")[-1].split() for line in path.read_text().splitlines()]
    rows = [cells for cells in rows if len(cells) in (10, 12) and cells[0].isdigit()]
    assert len(found) == len(rows) > 0
    names = [name for name in found if name not in ("part", "lock", "mode")]
    for cells, row in zip(rows, found.to_dict("records"), strict=True):
        for name, cell in zip(names, cells, strict=True):
            assert row[name] == (float(cell + "e-6") if "time" in name else int(cell)), name


def test_samples_of_lock_stat():
    reading = lock_stat.parse(recording("lock-stat-samples.txt"))
    assert reading.table["mode"].to_list() == ["W", "R"] + 7 * [""]
    assert reading.table["lock"][0] == "&mm->mmap_sem"
    assert reading.table["lock"][8] == "&(&dentry->d_lockref.lock)->rlock"


def test_older_versions_have_no_means_and_points_are_counted():
    reading = lock_stat.parse(recording("lock-stat-0.3-memcg.txt"))
    assert not any("avg" in name for name in reading.table)
    assert reading.left_out == ("Contention points are left out: 6.",)


def test_rows_alone_are_enough():
    rows = [line for line in recording("lock-stat-samples.txt").splitlines(True) if ": " in line]
    text = "".join(rows[1:] if rows[0].startswith("#") else rows)
    assert lock_stat.recognises(text)
    assert len(lock_stat.parse(text).table) == 9


@pytest.mark.parametrize("name", ["a:b:c", "with blank: x", "<script>", '"q"', "&rq->lock/1"])
def test_names_of_locks_are_kept(name):
    figures = " ".join("1 1 0.10 0.10 0.10 0.10 1 1 0.10 0.10 0.10 0.10".split())
    table = lock_stat.parse(f"lock_stat version 0.4\n   {name}-R:   {figures}\n").table
    assert (table.lock[0], table["mode"][0]) == (name, "R")


def test_a_last_figure_that_is_cut_is_left_out():
    text = recording("lock-stat-samples.txt").rstrip()
    reading = lock_stat.parse(text[:-1])
    assert len(reading.table) == 8
    assert reading.left_out[-1] == "The last line is cut off and left out."
    assert len(lock_stat.parse(text).table) == 9
