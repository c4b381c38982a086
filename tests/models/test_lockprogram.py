"""The program whose locks `make lockprogram` measures: what it counts, not how fast it is."""

import csv
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "locks.c"
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here")


def compiled(source, program):
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", program, source, "-lm", "-lpthread"], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(SOURCE, tmp_path_factory.mktemp("locks") / "locks")


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], check=True, stdout=-1, text=True, timeout=60)
    (row,) = csv.DictReader(done.stdout.splitlines())
    return {name: float(value) for name, value in row.items()}


@pytest.mark.parametrize("N", [1, 2, 3])
@pytest.mark.parametrize("lock", ["mutex", "spin", "ticket", "mcs"])
def test_no_two_threads_are_under_a_lock(program, lock, N):
    row = run(program, lock, N, 20, 20, 0.1)
    assert row["uses"] == row["guarded"] > 0 and row["seconds"] >= 0.1
    if N < 3:
        assert row["first"] + (row["last"] if N == 2 else 0) == row["uses"]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_two_threads_without_a_lock_are_noticed(tmp_path):
    source = tmp_path / "unlocked.c"
    source.write_text(SOURCE.read_text().replace("pthread_spin_lock(&spin);", ""))
    row = run(compiled(source, tmp_path / "unlocked"), "spin", 2, 0, 0, 0.3)
    assert row["guarded"] < row["uses"]


def test_more_steps_mean_fewer_uses(program):
    """A hundred times the steps: a factor of ten is certain whatever else the machine does."""
    few, many = (run(program, "spin", 1, steps, steps, 0.05)["uses"] for steps in (100, 10_000))
    assert many < few / 10


def test_passes_between_two_threads(program):
    line, wake = (run(program, what, 0.05) for what in ("line", "wake"))
    assert line["passes"] > 1 and wake["passes"] > 1
    assert line["calls"] == 0 < wake["calls"]


@pytest.mark.parametrize("words", [[], ["line"], ["queue", 1, 1, 1, 0.1], ["mcs", 65, 1, 1, 0.1],
                                   ["mcs", 0, 1, 1, 0.1], ["mcs", 1, 1, 1, 0]])  # fmt: skip
def test_wrong_words_are_told(program, words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "expected LOCK N THINK HOLD SECONDS" in done.stderr
