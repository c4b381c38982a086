"""The reader of cpu.stat against differences of its own figures."""

from pathlib import Path

import pytest

from nummodel.records import folder, readers
from nummodel.records.readers import cgroup
from nummodel.records.readers._reading import Malformed

FOLDER = Path(__file__).parent / "recordings"
TWO = "nr_periods 5\nnr_throttled {}\nthrottled_usec 7\n"


@pytest.mark.parametrize(("name", "unit"), [("cgroup-1", 1e-9), ("cgroup-2-by-hand", 1e-6)])
def test_figures_are_differences_between_copies(name, unit):
    path = FOLDER / f"{name}.txt"
    found, reading = readers.read(path)
    lines = [line.split() for line in path.read_text().splitlines()]
    half = len(lines) // 2
    before, after = dict(lines[:half]), dict(lines[half:])
    more = {n: int(after[n]) - int(before[n]) for n in before}
    lost = next(n for n in more if n.startswith("throttled"))
    assert found == "cgroup" and len(reading.table) == 1
    row = reading.table.iloc[0]
    assert row["throttled"] == more["nr_throttled"] / more["nr_periods"]
    assert row["throttled_time"] == pytest.approx(more[lost] * unit)


def test_of_many_copies_the_first_and_the_last_count():
    text = "".join(f"nr_periods {5 * i}\nnr_throttled {i}\nthrottled_usec {i}\n" for i in range(9))
    reading = cgroup.parse(text)
    assert reading.table["throttled"][0] == 0.2
    assert reading.table["throttled_time"][0] == pytest.approx(8e-6)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TWO.format(1), "a copy is missing or cut, expected one of before"),
        (TWO.format(2) + TWO.format(1), "counts go back"),
        (TWO.format(2) + "nr_periods 9\n", "missing or cut"),
        ("nr_periods 1\nnr_throttled 1\n" * 2, "no throttled_usec, expected cpu.stat"),
        (TWO.format(1) + "Killed\n", "missing or cut"),
    ],
)
def test_what_is_no_two_copies_is_refused(text, what):
    assert cgroup.recognises(text)
    with pytest.raises(Malformed) as caught:
        cgroup.parse(text)
    assert what in caught.value.wrong


def test_lines_between_copies_are_left_out():
    text = (FOLDER / "cgroup-1.txt").read_text()
    between = "\nafter:\nnr_periods 73"
    reading = cgroup.parse("before:\n" + text.replace("\nnr_periods 73", between))
    assert reading.table.equals(cgroup.parse(text).table)
    assert reading.left_out[-1].endswith("left out: 2.")


def test_a_run_that_was_stopped_by_its_limit_is_told(tmp_path):
    (tmp_path / "8.wrk.txt").write_text((FOLDER / "wrk-4.1.0.txt").read_text())
    (tmp_path / "8.cgroup.txt").write_text((FOLDER / "cgroup-2-by-hand.txt").read_text())
    reading = folder.read(tmp_path)
    assert reading.table["throttled"][0] == 0.75
    other = "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n\n"
    (tmp_path / "8.cpu.stat.txt").write_text(other + other.replace("s 0", "s 600"))
    assert folder.read(tmp_path).table["throttled"][0] == 0.75
    (told,) = [sentence for sentence in reading.left_out if "limit" in sentence]
    assert told.startswith("8.wrk.txt: the limit of processor time stopped the program in 75.0%")
