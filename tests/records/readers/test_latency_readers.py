"""Readers of latencies between cores and of memory: core-to-core-latency and MLC."""

from pathlib import Path

import numpy as np
import pytest

from nummodel.records.readers import core_to_core, mlc
from nummodel.records.readers._reading import Malformed

RECORDINGS = Path(__file__).parent / "recordings"


def recording(name):
    return (RECORDINGS / name).read_text()


@pytest.mark.parametrize("name, cores", [("x5650", 24), ("e5-2690", 32)])
def test_every_cell_of_a_matrix(name, cores):
    text = recording(f"core-to-core-{name}.csv")
    reading = core_to_core.parse(text)
    cells = [line.split(",") for line in text.split()]
    expected = [
        (i, j, float(cells[i][j] + "e-9"))
        for i in range(cores)
        for j in range(cores)
        if cells[i][j]
    ]
    assert list(reading.table.itertuples(index=False, name=None)) == expected
    assert len(expected) == cores * (cores - 1) // 2
    assert reading.left_out == ()


@pytest.mark.parametrize(
    "name, least, median, most", [("x5650", 7.11, 70.28, 79.67), ("e5-2690", 8.27, 105.47, 171.78)]
)
def test_latencies_agree_with_the_summary_of_the_data(name, least, median, most):
    """As in core_to_core_latency_ns.csv, which has quartiles of the same files."""
    latency = core_to_core.parse(recording(f"core-to-core-{name}.csv")).table.latency * 1e9
    assert latency.min() == pytest.approx(least, abs=0.005)
    assert latency.max() == pytest.approx(most, abs=0.005)
    assert latency.median() == pytest.approx(median, abs=0.005)


def test_a_full_matrix_and_gaps():
    table = core_to_core.parse("0,5,7\n5,0,6\n7,6,0\n").table
    assert len(table) == 6
    assert table.latency.to_list() == [5e-9, 7e-9, 5e-9, 6e-9, 7e-9, 6e-9]
    gaps = core_to_core.parse(",,\n5,,\n,6,\n")
    assert gaps.left_out == ("Pairs of cores below the diagonal without a figure: 1.",)


def test_other_tables_are_not_matrices():
    assert not core_to_core.recognises("N,X\n1,2\n2,3\n")
    assert not core_to_core.recognises("1,2\n3,4\n")
    assert not core_to_core.recognises(",,\n1,,\n")
    for text in (",,\n1,,\n1,2,,\n", ",\n1,7\n", ",\na,\n", ",\n1,\n1,\n"):
        with pytest.raises(Malformed):
            core_to_core.parse(text)


def test_a_matrix_that_ends_early_is_told():
    text = recording("core-to-core-x5650.csv")
    reading = core_to_core.parse(text[: len(text) // 2])
    assert reading.left_out[0] == "The last line is cut off and left out."
    assert "of 24 rows" in reading.left_out[1]


def test_every_figure_of_mlc():
    text = recording("mlc-3.9-8269cy.txt")
    table = mlc.parse(text).table
    figures = [cell for line in text.splitlines() for cell in line.split() if "." in cell]
    figures = [float(cell) for cell in figures if cell.replace(".", "").isdigit()]
    load = table[table.what == "loaded latency"]
    found = [
        figure
        for latency, bandwidth in zip(table.latency * 1e9, table.bandwidth / 1e6, strict=True)
        for figure in (latency, bandwidth)
        if not np.isnan(figure)
    ]
    np.testing.assert_allclose(found, figures, rtol=1e-12)
    assert load.delay.to_list()[:3] == [0, 2, 8]
    assert len(load) == 19


def test_loaded_latencies_agree_with_the_table_of_the_data():
    """The first and last rows of mlc_loaded_latency_8269cy.csv, and its idle latencies."""
    table = mlc.parse(recording("mlc-3.9-8269cy.txt")).table
    load = table[table.what == "loaded latency"]
    assert load.iloc[0][["latency", "bandwidth"]].to_list() == [261.5e-9, 225452.5e6]
    assert load.iloc[-1][["latency", "bandwidth"]].to_list() == [78.92e-9, 2867.2e6]
    idle = table[table.what == "idle latency"]
    assert idle.latency.to_list() == [77.9e-9, 143.2e-9, 144.4e-9, 78.4e-9]
    assert idle.to_node.to_list() == [0, 1, 0, 1]


def test_kinds_of_accesses_and_excerpts():
    idle = mlc.parse(recording("mlc-3.11-random.txt")).table
    assert idle.traffic[0] == "random access"
    assert idle.bandwidth.to_list()[-1] == 205531.7e6
    assert idle.traffic.to_list()[-1] == "Stream-triad like"
    excerpt = recording("mlc-3.5-loaded.txt").split("traffic type\n")[1]
    assert mlc.recognises(excerpt)
    assert len(mlc.parse(excerpt).table) == 4
    one = "Intel(R) Memory Latency Checker - v3.9\nCommand line parameters: --idle_latency\n\n"
    one += "Each iteration took 252.9 base frequency clocks (       76.5    ns)\n"
    assert mlc.parse(one).table.latency.to_list() == [76.5e-9]


def test_nodes_without_memory_and_other_megabytes():
    reading = mlc.parse(
        "Measuring idle latencies (in ns)...\nNuma node 0 1\n 0 77.9 -\n 1 143.2 -\n"
    )
    assert reading.table.latency.to_list() == [77.9e-9, 143.2e-9]
    assert reading.left_out == ("Pairs of nodes without a figure (-): 2.",)
    with pytest.raises(Malformed, match="1,048,576"):
        mlc.parse("Bandwidths are in MB/sec (1 MB/sec = 1,048,576 Bytes/sec)\n")


@pytest.mark.parametrize("row", ["0 77.9", "0 77.9 x", "0 77.9 1 2", "zero 1.0 2.0", "77.9 1.0"])
def test_rows_of_mlc_that_are_not_understood(row):
    with pytest.raises(Malformed):
        mlc.parse(f"Measuring idle latencies (in ns)...\nNuma node 0 1\n{row}\n 1 1.0 2.0\n")


def test_a_last_figure_of_mlc_that_is_cut():
    text = recording("mlc-3.5-loaded.txt").rstrip("\n")
    assert len(mlc.parse(text).table) == 4
    for cut in (1, 2, 3, 9):
        reading = mlc.parse(text[:-cut])
        assert len(reading.table) == 3
        assert reading.left_out[-1] == "The last line is cut off and left out."
