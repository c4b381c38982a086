"""Outputs of three tools as one table of locks, and the page of notebook 24 about each."""

import html
from pathlib import Path

import pytest
from quick import one_in

from nummodel.errors import InputError
from nummodel.records import contended, data
from nummodel.reports import pages, report, runs

RECORDINGS = Path(__file__).parent / "readers" / "recordings"


def test_a_line_of_lock_stat():
    """The figures are those of the recording, in seconds."""
    (row,) = contended.load(RECORDINGS / "lock-stat-0.3-memcg.txt").to_dict("records")
    assert (row["contentions"], row["acquisitions"]) == (3086077, 80763359)
    assert (row["wait"], row["hold"]) == pytest.approx((1.97850838, 37.89263586))
    assert row["longest"] == pytest.approx(0.01437227) and row["elapsed"] != row["elapsed"]
    text = (RECORDINGS / "lock-stat-0.3-memcg.txt").read_text()
    counters = next(line for line in text.splitlines() if "&counter->lock:" in line).split()
    assert row["longest_hold"] == pytest.approx(float(counters[-2]) / 1e6)


def test_a_published_pair_is_two_lines():
    table = contended.load("lock-stat-pair")
    assert list(table.index) == ["before", "after"]
    assert table["elapsed"].tolist() == pytest.approx([166.491, 166.799])


def test_readers_and_writers_are_two_rows():
    names = contended.load(RECORDINGS / "lock-stat-0.4-points-by-hand.txt").index
    assert {"&mm->mmap_sem (R)", "&mm->mmap_sem (W)"} < set(names)


def test_callers_of_the_same_name_are_one_row():
    table = contended.load(RECORDINGS / "perf-lock-6.1-caller.txt")
    text = (RECORDINGS / "perf-lock-6.1-caller.txt").read_text()
    rows = [
        line.split()
        for line in text.splitlines()
        if line.endswith("unix_stream_read_generic+0x6de")
    ]
    assert table.index.is_unique and table["wait"].is_monotonic_decreasing
    found = table.loc["unix_stream_read_generic+0x6de (spinlock)", "contentions"]
    assert found == sum(int(row[0]) for row in rows) > 0
    assert table[["acquisitions", "hold"]].isna().all(axis=None)


def test_a_lock_without_a_name_has_its_address():
    names = contended.load(RECORDINGS / "perf-lock-6.3-lock.txt").index
    assert "mmap_lock (rwsem)" in names and not any(name.startswith(" ") for name in names)


def test_rates_are_those_of_a_second():
    """Rate times mean spin is what the screen prints as a share of 32 processors."""
    table = contended.load(RECORDINGS / "fcx265-5.3.txt")
    assert table.index[0] == "SRMSLOCK" and (table["elapsed"] == 1).all()
    share = data.value("zvm-lock-log", "total_spin", lock="SRMSLOCK")
    assert table["wait"].iloc[0] / 32 == pytest.approx(share, abs=share.half * 3)
    assert contended.load("zvm-lock-log")["wait"].tolist() == pytest.approx(table["wait"].tolist())


def test_what_a_row_is():
    """perf lock names callers unless it runs with -l: these are call sites, and no locks."""
    is_a = {
        "perf-lock-6.1-caller.txt": "call site",
        "perf-lock-6.3-lock.txt": "lock",
        "fcx265-5.3.txt": "lock",
        "lock-stat-0.3-memcg.txt": "lock",
    }
    tables = {name: contended.load(RECORDINGS / name) for name in is_a}
    assert {name: table.index.name for name, table in tables.items()} == is_a
    assert tables["fcx265-5.3.txt"].attrs["tool"] == "fcx265"


def test_the_total_of_a_screen_is_no_lock(tmp_path):
    """FCX265 of z/VM 7.3 ends with a row >>Total>, whose waits are those of the locks above."""
    file = tmp_path / "fcx265.txt"
    text = (RECORDINGS / "fcx265-7.3-by-hand.txt").read_text()
    row = next(line for line in text.splitlines() if "RSACALLK" in line)
    file.write_text(f"{text.rstrip()}\n{row.replace('RSACALLK', '>>Total>')}\n")
    assert list(contended.load(file).index) == ["RSACALLK"]


@pytest.mark.parametrize(
    "name, wrong",
    [("vmstat-4-n.txt", "an output of vmstat, expected an output of /proc/lock_stat"),
     ("perf-lock-samples.txt", "3 outputs, expected one"),
     ("perf-lock-6.1-task.txt", "waits of tasks or groups, expected those for locks"),
     ("missing.txt", "No such file")],
)  # fmt: skip
def test_other_files_are_refused(name, wrong):
    with pytest.raises(InputError, match=wrong):
        contended.load(RECORDINGS / name)


@pytest.mark.parametrize(
    "name, found, more",
    one_in(6, [
     ("lock-stat-0.4-points-by-hand.txt", "is for &mm->mmap_sem (R)", ["elapsed=100", "c=4"]),
     ("lock-stat-0.3-memcg.txt", "100 % is for &counter->lock", []),
     ("perf-lock-6.1-caller.txt", "No lock of this output is a limit", ["elapsed=2", "c=8"]),
     ("perf-lock-6.1-caller.txt", "is at the call site exit_to_user_mode_loop", ["elapsed=0.02"]),
     ("fcx265-5.3.txt", "What to do next: take FCX265 at several loads", ["c=32"]),
     ("lock-stat-0.4-points-by-hand.txt", "No lock of this output is a limit", ["elapsed=100"]),
    ]),
)  # fmt: skip
@pytest.mark.slow
def test_a_page_about_a_file_of_ones_own(name, found, more, tmp_path):
    """It answers about this file, and does not speak of the published lines."""
    (run,) = runs.plan(["24"], [f"file={RECORDINGS / name}", *more])
    outcome = report.execute_run(run, tmp_path)
    assert outcome.error == "" and found in outcome.found
    page = html.unescape((tmp_path / f"{run.name}.html").read_text())
    assert all(paragraph in page for paragraph in outcome.found.splitlines())
    for text in (page, pages.index([outcome])):
        assert "i_mmap_mutex" not in text and "memory controller" not in text
    assert ("lock_stat" in outcome.found) == (name.startswith("perf") and "elapsed=2" not in more)
