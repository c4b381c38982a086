"""Folders of outputs as measurements, and the steady part of samples."""

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nummodel import measure
from nummodel.answers import limits, study
from nummodel.errors import InputError
from nummodel.models import networks
from nummodel.records import _steady as steady
from nummodel.records import columns, folder, readers

RECORDED = Path(__file__).parent / "readers" / "recordings" / "load-test"


def samples(of, first, last=None):
    """Columns of the lines of a file of vmstat, by an extraction of its own."""
    lines = [line.split() for line in (RECORDED / of).read_text().split("\n")]
    rows = [line for line in lines if line and line[0].isdigit()][1:]  # the first is since boot
    return np.array(rows, dtype=float)[first:last]


def test_a_folder_has_a_row_for_each_run():
    table = folder.read(RECORDED).table
    assert table["N"].tolist() == [1, 2, 4]
    for n, X in zip(table["N"], table["X"], strict=True):
        text = (RECORDED / f"Tier32G_RW_{n:g}th.sysbench.txt").read_text()
        assert X == float(text.split("transactions:")[1].split("(")[1].split()[0])
    assert set(table["series"]) == {"Tier32G_RW_Nth"}


def test_means_are_those_of_the_steady_part():
    row = folder.read(RECORDED).table.set_index("N").loc[4.0]
    inside = samples("Tier32G_RW_4th.vmstat.txt", 2, -1)  # a tenth and a twentieth of 21
    assert row["user"] == pytest.approx(inside[:, 12].mean() / 100)
    assert row["system"] == pytest.approx(inside[:, 13].mean() / 100)
    assert row["switches"] == pytest.approx(inside[:, 11].mean())
    assert row["U_cpu"] == pytest.approx(row["user"] + row["system"])
    assert row["c_cpu"] == 2


def test_names_may_tell_more(tmp_path):
    for engine in ("one", "other"):
        for n in (2, 4):
            for tool in ("sysbench", "vmstat"):
                source = RECORDED / f"Tier32G_RW_{n}th.{tool}.txt"
                shutil.copy(source, tmp_path / f"{engine}-{n}.{tool}")
    table = folder.read(tmp_path, "{engine}-{N}.{tool}").table
    assert sorted(zip(table["engine"], table["N"], strict=True)) == [
        ("one", 2),
        ("one", 4),
        ("other", 2),
        ("other", 4),
    ]
    with pytest.raises(InputError, match="pattern"):
        folder.read(tmp_path, "{N}{N}")


def test_another_load_in_a_name_is_told(tmp_path):
    shutil.copy(RECORDED / "Tier32G_RW_4th.sysbench.txt", tmp_path / "8.sysbench.txt")
    told = folder.read(tmp_path, "{N}.{tool}.txt").left_out
    assert any("the name says N = 8, and the tool 4" in what for what in told)


def test_several_runs_in_one_file_are_rows(tmp_path):
    text = "".join((RECORDED / f"Tier32G_RW_{n}th.sysbench.txt").read_text() for n in (1, 2, 4))
    (tmp_path / "all.txt").write_text(text)
    assert folder.read(tmp_path).table["N"].tolist() == [1, 2, 4]


@pytest.mark.parametrize("files", [[], ["vmstat"], ["odd"]])
def test_a_folder_without_runs_is_refused(files, tmp_path):
    for name in files:
        odd = tmp_path / f"{name}.txt"
        source = RECORDED / f"Tier32G_RW_1th.{name}.txt"
        odd.write_text(source.read_text() if source.exists() else "nothing\n")
    with pytest.raises(InputError, match="no files" if not files else "no run of a load"):
        folder.read(tmp_path)


def test_a_folder_and_an_output_can_be_fitted():
    points = columns.read(RECORDED)
    assert points.N.tolist() == [1, 2, 4]
    assert set(points.others) == {"R", "U_cpu", "c_cpu", "U_vda"}
    recording = RECORDED.parent / "pgbench-15-P.txt"
    assert columns.read(recording).X.tolist() == [632.665895]


def iostat(cpu, **devices):
    """What iostat prints of 8 processors and devices that are in use for these shares."""
    report = f"avg-cpu: %user %nice %system %iowait %steal %idle\n {100 * cpu:.2f} 0 0 0 0 "
    report += f"{100 - 100 * cpu:.2f}\n\nDevice r/s w/s %util\n"
    report += "".join(f"{n.replace('_', '-')} 1 1 {100 * U:.2f}\n" for n, U in devices.items())
    return "Linux 6.1.0 (a) \t11/23/26 \t_x86_64_\t(8 CPU)\n\n" + f"{report}\n" * 11


@pytest.mark.slow
def test_a_disk_of_a_folder_reaches_the_fit_as_one_server(tmp_path):
    """Eight processors, and a disk that is the limit at 100 /s, below a volume and beside an idle
    drive; a run whose iostat cannot be read is told by its name.
    """
    loads, D_cpu, D_sda = [1, 2, 4, 8, 16, 32], 0.02, 0.01
    stations = [networks.queue(D_cpu, servers=8), networks.queue(D_sda)]
    for N, X in zip(loads, networks.solve(stations, loads, 0.1).X, strict=True):
        (tmp_path / f"{N}.csv").write_text(f"N,X,R\n{N},{X:.4f},{N / X - 0.1:.6f}\n")
        used = {"sda": X * D_sda, "dm_0": X * D_sda, "sr0": 0.0}
        (tmp_path / f"{N}.iostat.txt").write_text(iostat(X * D_cpu / 8, **used))
    points = columns.read(tmp_path)
    assert {*points.others} == {"R", "U_cpu", "c_cpu", "U_sda"}
    assert points.others["U_sda"] == pytest.approx(points.X * D_sda, abs=1e-4)
    assert any("left out: U_sr0, below 1 % at" in s for s in points.warnings)
    assert any("left out: U_dm-0, which pass" in s for s in points.warnings)
    found = limits.read(tmp_path)
    assert found.stations[0] == "sda" and found.servers("sda") == 1
    assert found.full_at("sda")[0] == pytest.approx(1 / D_sda, rel=0.01)
    fitted = study.fit_table(tmp_path)
    assert fitted.chosen == "closed" and fitted.limit["what"] == "sda"
    (tmp_path / "4.iostat.txt").write_text(iostat(2.0, sda=0.4))
    (tmp_path / "4.vmstat.txt").write_text((RECORDED / "Tier32G_RW_4th.vmstat.txt").read_text())
    told = limits.read(tmp_path).study.remarks
    assert any(s.startswith("4.iostat.txt: left out: ") for s in told)
    assert "run 4: left out, as U_sda is empty there" in told and not any(
        "c_cpu" in s for s in told
    )


def test_names_from_files_are_harmless_in_csv():
    import pandas as pd

    table = pd.DataFrame({"N": [1.0], "run": ["=cmd|' /C calc'!A0"], "@x": ["+A1"], "mode": [""]})
    meanings = {n: readers.Column("-", "") for n in table}
    text = readers.Reading(table, meanings).csv()
    assert text == "N,run,'@x,mode\n1.0,'=cmd|' /C calc'!A0,'+A1,\n"


def series(rho, random, n=900):
    """Samples of mean 100 that follow one another with the correlation `rho`."""
    noise, x = random.standard_normal(n), np.zeros(n)
    for i in range(n):
        x[i] = rho * x[i - 1] + noise[i]
    return 100 + 5 * x * np.sqrt(1 - rho**2)


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_steady_samples_are_kept_and_errors_of_their_mean_hold(rho):
    random = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        X = series(rho, random)
        part = steady.find(X)
        assert part == (5, 897, False)
        mean, error = part.mean(X)
        held += abs(mean - 100) < 2.09 * error
    assert 0.9 < held / 200 <= 1


@pytest.mark.parametrize("n", [20, 30, 60])
def test_short_steady_series_seldom_seem_to_warm_up(n):
    """One in ten thousand by the test; more, as the cut is chosen after the samples are seen."""
    random = np.random.default_rng(9)
    assert sum(steady.find(series(0.0, random, n)).warm for _ in range(500)) <= 5


def test_names_with_signs_like_digits_are_of_two_kinds(tmp_path):
    for name in ("a#.sysbench.txt", "a2.sysbench.txt"):
        shutil.copy(RECORDED / "Tier32G_RW_2th.sysbench.txt", tmp_path / name)
    assert len(folder.read(tmp_path).table) == 2


def test_warm_up_is_cut():
    random = np.random.default_rng(8)
    for _ in range(50):
        X = series(0.5, random) * (1 - 0.3 * np.exp(-np.arange(900) / 60))
        part = steady.find(X)
        assert part.warm
        assert 60 < part.first < 450
        assert part.mean(X)[0] == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("n", [0, 1, 3, 7, 10])
def test_few_samples_have_a_mean_at_least(n):
    X = np.full(n, 2.0)
    mean, error = steady.find(X).mean(X)
    assert (mean == 2 if n else np.isnan(mean)) and (np.isnan(error) or error == 0)


def nummodel(*arguments, **options):
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "nummodel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


#: A load generator: prints what sysbench does, of a system whose throughput has a ceiling.
FAKE = """import sys, time
n = int(sys.argv[1]); time.sleep(float(sys.argv[2])); X = min(100 * n, 300)
print(f"sysbench 1.0.20\\nNumber of threads: {n}\\n    transactions: 10 ({X} per sec.)")
print(f"    total time: 1.0s\\n    total number of events: 10\\n  avg: {1000 * n / X}")
"""


def test_a_command_is_measured_and_goes_on_where_it_stopped(tmp_path):
    tool, out = tmp_path / "tool.py", tmp_path / "out"
    tool.write_text(FAKE)
    command = ["measure", "--at", "1,2,4,8", "--repeat", 2, "--output", out, "--"]
    command += [sys.executable, tool, "{N}", "0.1"]
    first = nummodel(*command)
    assert first.returncode == 0, first.stderr
    table = folder.read(out).table
    assert sorted(table["N"]) == [1, 1, 2, 2, 4, 4, 8, 8]
    assert table["X"].tolist() == [min(100 * n, 300) for n in table["N"]]
    (out / "4-r2.command.txt").unlink()
    assert "7 of 8 runs are there already" in nummodel(*command).stderr


def test_an_interrupt_ends_the_command_with_its_children(tmp_path):
    out, alive = tmp_path / "out", tmp_path / "alive"
    child = f"import time\\nwhile True:\\n open({str(alive)!r}, 'w').close(); time.sleep(0.05)"
    tool = tmp_path / "tool.py"
    tool.write_text(
        f"import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', \"{child}\"]); time.sleep(600)  # {{N}}\n"
    )
    command = [sys.executable, "-m", "nummodel", "measure", "--at", "1", "--output", str(out), "--"]
    # A job in the background ignores interrupts, and its children inherit that.
    usual = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([*command, sys.executable, str(tool), "{N}"], preexec_fn=usual)
    end = time.monotonic() + 60
    while not alive.exists() and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    alive.unlink()
    time.sleep(0.5)
    assert not alive.exists()
    assert [path.name for path in out.iterdir()] == [".command"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "1,2", "--", "true"], "no {N} in the command"),
        (["--at", "1,1", "--", "echo", "{N}"], "--at 1,1"),
        (["--at", "0", "--", "echo", "{N}"], "--at 0"),
        (["--at", "1", "--", "/no/such", "{N}"], "no such program"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, message, tmp_path):
    result = nummodel("measure", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_table_of_ones_own_is_a_run_and_another_output_is_not(tmp_path):
    command = ["measure", "--at", "4,8", "--repeat", 1, "--output", "out", "--", "printf"]
    result = nummodel(*command, "no table {N}", cwd=tmp_path)
    assert result.returncode == 1 and "to read it" not in result.stderr
    assert "expected an output of a load generator, or a table" in result.stderr
    assert sorted(p.name for p in (tmp_path / "out").glob("*.failed")) == [
        "4-r1.command.failed",
        "8-r1.command.failed",
    ]
    again = nummodel(*command, "N,X\n{N},3.5", cwd=tmp_path)
    assert again.returncode == 2 and "out: has runs of another command (printf 'no" in again.stderr
    command[command.index("out")] = "other"
    assert nummodel(*command, "N,X\n{N},3.5", cwd=tmp_path).returncode == 0
    table = folder.read(tmp_path / "other").table
    assert table["N"].tolist() == [4, 8] and table["X"].tolist() == [3.5, 3.5]


def test_what_readers_always_leave_out_is_told_last():
    told = folder.read(RECORDED).left_out
    usual = [folder.ROUTINE.search(sentence.split(": ", 1)[1]) is not None for sentence in told]
    assert usual == sorted(usual) and not all(usual) and any(usual)


def test_counts_of_the_limit_that_stopped_a_run_are_kept():
    counts = "nr_periods {}\nnr_throttled {}\nthrottled_usec 1\n".format
    before = {Path("a"): counts(5, 1), Path("b"): counts(9, 3), Path("c"): counts(0, 0)}
    after = {Path("a"): counts(8, 1), Path("b"): counts(12, 5), Path("c"): counts(0, 0)}
    assert measure._limited(before, after) == counts(9, 3) + counts(12, 5)
    assert measure._limited(before, before) == measure._limited({}, after) == ""


def test_runs_that_fail_are_told_and_given_up(tmp_path):
    command = ["measure", "--at", "1,2,4,8", "--output", "out", "--", sys.executable, "-c"]
    result = nummodel(*command, "raise SystemExit('no database {N}')", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.count("no database") == 3
    assert "the rest is not tried" in result.stderr


def test_every_file_of_a_folder_is_accounted_for(tmp_path):
    """What was read, and what was not and why; also where no load generator is among the files."""
    vmstat = (RECORDED / "Tier32G_RW_1th.vmstat.txt").read_text()
    for name in ("8.vmstat.txt", "9.vmstat.txt"):
        (tmp_path / name).write_text(vmstat)
    (tmp_path / "notes.txt").write_text("what was done")
    with pytest.raises(InputError, match="no run of a load generator") as error:
        folder.read(tmp_path)
    assert all(name in str(error.value) for name in ("8.vmstat.txt", "9.vmstat.txt", "notes.txt"))
    (tmp_path / "8.csv").write_text("N,X\n8,100\n")
    told = " ".join(folder.read(tmp_path).left_out)
    assert "8.csv: read as the output of table" in told
    assert "8.vmstat.txt: read as the output of vmstat" in told
    assert "9.vmstat.txt: left out: no load generator" in told and "notes.txt: left out" in told


def test_names_of_files_tell_the_load_that_an_output_lacks(tmp_path):
    """As of hey, which prints no number of clients."""
    recording = next(RECORDED.parent.glob("hey*.txt")).read_text()
    for N in (8, 16):
        (tmp_path / f"{N}.txt").write_text(recording)
    assert folder.read(tmp_path, "{N}.txt").table["N"].tolist() == [8, 16]
    with pytest.raises(InputError, match="--pattern says what names tell"):
        folder.read(tmp_path)


def test_several_runs_in_a_file_that_lacks_their_loads_are_left_out(tmp_path):
    """As of redis-benchmark with --csv, which prints no number of clients."""
    shutil.copy(RECORDED.parent / "redis_benchmark-7-csv.txt", tmp_path)
    with pytest.raises(InputError, match=r"redis_benchmark-7-csv\.txt: left out"):
        folder.read(tmp_path)
    (tmp_path / "8.csv").write_text("N,X\n8,100\n")
    assert folder.read(tmp_path).table["N"].tolist() == [8]
