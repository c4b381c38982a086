"""A folder with as many files as a long series of measurements leaves."""

import re
from pathlib import Path

import pytest
from limited import limited

from nummodel.records import folder

RECORDINGS = Path(__file__).parent / "readers" / "recordings"
#: A recording of a load generator, and what its load is written as.
LOADS = {"sysbench": "sysbench-1.0.20.txt", "pgbench": "pgbench-15-P.txt"}
LOAD = re.compile("(Number of threads: |number of clients: )[0-9]+")
WATCHERS = {
    "vmstat": "load-test/Tier32G_RW_4th.vmstat.txt",
    "iostat": "iostat-12.6-xt.txt",
    "mpstat": "mpstat-12.6.txt",
}


@pytest.mark.slow
def test_a_thousand_files_are_read_in_half_a_minute(tmp_path):
    """Five repeats of 25 loads with each of two load generators, and three tools beside each."""
    for tool, recording in LOADS.items():
        text = (RECORDINGS / recording).read_text()
        for N in range(1, 26):
            for repeat in range(1, 6):
                run = tmp_path / tool / f"{N}-r{repeat}"
                run.parent.mkdir(exist_ok=True)
                Path(f"{run}.{tool}.txt").write_text(LOAD.sub(rf"\g<1>{N}", text))
                for watcher, watched in WATCHERS.items():
                    Path(f"{run}.{watcher}.txt").write_text((RECORDINGS / watched).read_text())
    reading, took = limited(lambda: folder.read(tmp_path), 60)
    assert took < 30
    table = reading.table
    assert len(table) == 250 and sorted(set(table["N"])) == list(range(1, 26))
    assert {"U_cpu", "U_vda", "c_cpu", "switches"} <= set(table)
