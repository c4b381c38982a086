"""Sweeps: every point once, whatever does the work, and however often it was stopped."""

import os
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from reporting import wait_for

from nummodel import cluster, sweeps
from nummodel.errors import InputError
from nummodel.models import scaling
from nummodel.sweeps import sweep

GRID = {"a": [1, 2, 3], "b": np.array([0.5, 1.5]), "c": range(4)}


def volume(a, b, c):
    return a * b + c


def rows(found):
    return found.to_table().to_pandas()


def expected():
    return pd.DataFrame([(a, b, c, a * b + c) for a, b, c in product(*GRID.values())])


@pytest.mark.parametrize("jobs, chunk", [(1, 0), (1, 5), (2, 5), (1, 1)])
def test_all_combinations_in_order(tmp_path, jobs, chunk):
    found = rows(sweep(volume, GRID, tmp_path, jobs, chunk=chunk))
    assert list(found) == ["a", "b", "c", "value"]
    assert (found.to_numpy() == expected().to_numpy()).all()
    if chunk:
        assert len(list(tmp_path.glob("*.parquet"))) == -(-24 // chunk)
    pd.testing.assert_frame_equal(found, pd.read_parquet(tmp_path))


def test_samples_stay_side_by_side(tmp_path):
    sample = pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": [3.0, 4.0, 6.0]})
    found = rows(sweep(lambda a, b: {"sum": a + b, "ratio": a / b}, sample, tmp_path, chunk=2))
    assert found.to_dict("list") == {
        "a": [1, 2, 5],
        "b": [3, 4, 6],
        "sum": [4, 6, 11],
        "ratio": [1 / 3, 0.5, 5 / 6],
    }


def test_a_law_gives_its_result_by_name(tmp_path):
    """Amdahl's: no throughput is above 1/sigma."""
    grid = {"N": [1, 10, 1e9], "sigma": [0.1, 0.5]}
    found = rows(sweep(partial(scaling.amdahl_throughput, X1=1.0), grid, tmp_path, 1))
    assert found.value[:2].tolist() == [1, 1]
    assert found.value[4:].tolist() == pytest.approx([10, 2])


def test_a_study_may_give_rows_of_its_own(tmp_path):
    def divisors(n):
        some = [d for d in range(1, n[0] + 1) if n[0] % d == 0]
        return pd.DataFrame({"n": n[0], "divisor": some})

    found = rows(sweep(divisors, {"n": range(1, 7)}, tmp_path, 2, chunk=1))
    assert found.groupby("n").divisor.sum().tolist() == [1, 3, 4, 7, 6, 12]


def noted(x, log, fails):
    """Twice x; it notes each call, and fails at 7 as long as there is a file."""
    with open(log, "a") as file:
        file.write(f"{x[0]}\n")
    if x[0] == 7 and Path(fails).exists():
        raise ZeroDivisionError
    return 2 * x


def test_a_sweep_that_failed_goes_on_from_there(tmp_path):
    log, fails, folder = tmp_path / "log", tmp_path / "fails", tmp_path / "swept"
    fails.touch()
    model = partial(noted, log=str(log), fails=str(fails))
    with pytest.raises(ZeroDivisionError):
        sweep(model, {"x": range(10)}, folder, 1, chunk=1)
    done = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert 0 < len(done) < 10
    fails.unlink()
    found = rows(sweep(model, {"x": range(10)}, folder, 1))
    assert found.value.tolist() == list(range(0, 20, 2))
    assert {path: path.stat().st_mtime_ns for path in done} == done
    called = log.read_text().split()
    assert set(called) == set(map(str, range(10)))
    twice = {x for x in called if called.count(x) > 1}  # 7, and what was under way then
    assert len(twice) == len(called) - 10 <= 10 - len(done)


SCRIPT = """
import os, sys, time
import numpy as np
from pathlib import Path
from nummodel.sweeps import sweep

def slow(x, y):
    time.sleep(0.05)
    return 10 * x + y

if __name__ == "__main__":
    found = sweep(slow, {"x": range(10), "y": range(10)}, Path("swept"), 2, chunk=2)
    assert found.to_table()["value"].to_pylist() == list(range(100))
    print("whole")
"""


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_its_processes_end(tmp_path):
    script, folder = tmp_path / "script.py", tmp_path / "swept"
    script.write_text(SCRIPT)
    killed = subprocess.Popen([sys.executable, script], cwd=tmp_path)
    wait_for(lambda: len(list(folder.glob("*.parquet"))) >= 3)
    started = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.wait()
    wait_for(lambda: not any(process.is_running() for process in started))
    done = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert 3 <= len(done) < 50
    again = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert again.stdout == "whole\n", again.stderr
    assert {path: path.stat().st_mtime_ns for path in done} == done
    renamed = script.rename(tmp_path / "renamed.py")
    again = subprocess.run([sys.executable, renamed], cwd=tmp_path, capture_output=True, text=True)
    assert again.stdout == "whole\n", again.stderr
    assert {path: path.stat().st_mtime_ns for path in done} == done


def test_a_file_that_was_damaged_is_made_again(tmp_path):
    sweep(volume, GRID, tmp_path, 1, chunk=10)
    path = tmp_path / "part-000000001.parquet"
    whole = path.read_bytes()
    for damaged in (whole[:-10], b"", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        path.write_bytes(damaged)
        assert (rows(sweep(volume, GRID, tmp_path, 1)).to_numpy() == expected().to_numpy()).all()
        assert path.read_bytes() == whole


def test_another_sweep_in_the_folder_is_refused(tmp_path):
    factor = 2
    sweep(lambda a: factor * a, {"a": [1, 2]}, tmp_path, 1)
    factor = 3
    others = [
        (lambda a: factor * a, {"a": [1, 2]}, 0),
        (volume, {"a": [1, 2]}, 0),
        (volume, {"a": [1, 3]}, 0),
    ]
    for model, grid, chunk in others:
        with pytest.raises(InputError, match="holds a sweep of another model, grid or nummodel"):
            sweep(model, grid, tmp_path, 1, chunk=chunk)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my.parquet").touch()
    with pytest.raises(InputError, match="holds other files"):
        sweep(volume, GRID, tmp_path / "mine", 1)


@pytest.mark.parametrize(
    "model, grid, what",
    [
        (lambda a: a[:-1], {"a": [1, 2]}, r"gives value of shape \(1,\), expected \(2,\)"),
        (lambda a: 1.0, {"a": [1, 2]}, r"gives value of shape \(\), expected \(2,\)"),
        (volume, {}, "no parameter"),
        (volume, {"a": []}, r"a has shape \(0,\)"),
        (volume, {"a": 3}, r"a has shape \(\)"),
    ],
)
def test_what_is_no_sweep_is_refused(tmp_path, model, grid, what):
    with pytest.raises(ValueError, match=what):
        sweep(model, grid, tmp_path, 1, chunk=2)


@pytest.mark.parametrize(
    "once, each, places, size",
    [
        (0.0, 0.01, 2, 100),
        (0.5, 0.01, 2, 100),
        (0.0, 2.0, 2, 1),
        (0.0, 1e-9, 2, 10**6),
        (0.0, 1e-5, 2, 62_500),  # a tenth to one second: 16 chunks, and 80
        (0.0, 1e-5, 10, 12_500),
        (0.0, 1e-5, 100, 10_000),
    ],
)
def test_chunks_are_of_about_a_second(monkeypatch, once, each, places, size):
    """By a clock that only the model moves on: by `once` in its first call, and for each point."""
    clock = [0.0]
    monkeypatch.setattr(sweeps, "perf_counter", lambda: clock[0])

    def model(x):
        clock[0] += each * len(x) + (once if clock[0] == 0 else 0.0)
        return x

    points = sweeps.Points.of({"x": range(10**6)})
    assert sweeps._size(model, points, places) == pytest.approx(size, abs=1)


@pytest.mark.slow
def test_workers_of_dask_do_the_same(tmp_path, monkeypatch):
    from distributed import Client

    local = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    with Client(**local, dashboard_address="127.0.0.1:0") as client:
        found = rows(sweep(volume, GRID, tmp_path / "dask", client=client, chunk=5))
        sample = pd.DataFrame({"a": range(9), "b": 1.0, "c": 0})
        sampled = rows(sweep(volume, sample, tmp_path / "sample", client=client, chunk=2))
    assert (found.to_numpy() == expected().to_numpy()).all()
    assert sampled.value.tolist() == list(range(9))


KEYS = """
import math
from dataclasses import dataclass
from functools import partial
from nummodel.sweeps import Points, _key

@dataclass
class Machine:
    disks: set
    factor: int = 2
    def speed(self, x):
        return [scaled(y) for y in x]

WORDS = {"lock", "queue", "node", "disk", "memory"}

def scaled(y):
    return y * len(WORDS)

def model(x, words=frozenset(WORDS)):
    return Machine({"one", "two", "three"}).speed(x)

points = Points.of({"x": [1, 2]})
for some in (model, partial(model, words=WORDS), Machine(WORDS).speed, math.hypot, lambda x: x):
    print(_key(some, points))
"""


@pytest.mark.slow
def test_a_key_is_the_same_in_each_process_and_changes_with_the_model(tmp_path):
    """Of classes of a script and of sets, which cloudpickle writes anew each time."""

    def keys(seed, source):
        script = tmp_path / "script.py"
        script.write_text(source)
        run = [sys.executable, script]
        done = subprocess.run(run, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True)
        assert not done.returncode, done.stderr
        return done.stdout.split()

    first = keys("1", KEYS)
    assert len(set(first)) == 5 and keys("2", KEYS) == first == keys("3", "# words\n" + KEYS)
    for old, new in [("y * len", "y + len"), ('"node", ', ""), ("Machine({", 'Machine({"no", ')]:
        changed = keys("1", KEYS.replace(old, new))
        assert changed[0] != first[0] and changed[3:] == first[3:]


def test_chunks_without_rows_and_of_other_types_make_one_data_set(tmp_path):
    def some(n):
        """No row and no column at 1, whole numbers at 2, others above."""
        numbers = [k if n[0] == 2 else k / n[0] for k in range(n[0])] if n[0] > 1 else []
        return pd.DataFrame({"n": n[0], "part": numbers} if numbers else {})

    found = rows(sweep(some, {"n": range(1, 5)}, str(tmp_path), 1, chunk=1))
    assert found.n.tolist() == [2, 2, 3, 3, 3, 4, 4, 4, 4]
    assert found.part.tolist() == [0, 1, 0, 1 / 3, 2 / 3, 0, 0.25, 0.5, 0.75]


def test_calls_of_a_model_in_a_chunk_may_differ_in_type(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "TOGETHER", 1)
    found = rows(sweep(lambda n: n if n[0] < 2 else n / 2, {"n": [1, 2, 3]}, tmp_path, 1, chunk=3))
    assert found.value.tolist() == [1, 1, 1.5]


def test_of_two_who_begin_a_sweep_the_first_decides(tmp_path):
    """While the second still measures, the first has written its card."""

    def measured():
        sweeps._agreed(tmp_path, "key", 7, None)
        return 5

    assert sweeps._agreed(tmp_path, "key", 0, measured) == 7


def test_a_chunk_of_fewer_than_no_points_is_refused(tmp_path):
    with pytest.raises(ValueError, match="chunk is -1"):
        sweep(volume, GRID, tmp_path, chunk=-1)


def test_without_the_extra_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not installed: pip install 'nummodel\[cluster\]'$"):
        sweep(volume, GRID, tmp_path)
