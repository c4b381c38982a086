"""Contend for the lock of a directory, split it, and let `perf lock` count the waits.

Processes create and remove files of their own in one of m directories, chosen at random each time.
The kernel takes the lock of that directory for both. `perf lock` counts contended acquisitions and
their waits, but neither acquisitions nor holds; the processes count the acquisitions. Runs with 1
and with m directories alternate. Needs root, `perf`, and a kernel with the tracepoints
lock:contention_begin and lock:contention_end (5.19 or later). Writes data/directory-lock.csv.
"""

import csv
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nummodel.records import contended

PROCESSES, DIRECTORIES, RUNS, SECONDS = 2, 4, 6, 5.0
TABLE = Path(__file__).parent.parent / "data" / "directory-lock.csv"
#: Who takes the lock of a directory: unlink, and open with O_CREAT.
CALLERS = ("unlink", "filp_open", "open_last_lookups", "path_openat")


def use(folder: str, m: int, number: int) -> int:
    """Create and remove a file until the time is over; gives how often the lock was taken."""
    rng, uses, end = random.Random(number), 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        path = f"{folder}/{rng.randrange(m)}/{number}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.unlink(path)
        uses += 2
    return uses


def run(m: int, where: str) -> tuple[int, int, float, float]:
    """Acquisitions, contentions, waits and elapsed time of a run with m directories."""
    with tempfile.TemporaryDirectory(dir=where) as folder:
        for number in range(m):
            os.mkdir(f"{folder}/{number}")
        recording = f"{folder}/locks.data"
        perf = subprocess.Popen(["perf", "lock", "record", "-a", "-o", recording, "sleep", "60"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        time.sleep(1.0)
        begin = time.monotonic()
        with multiprocessing.Pool(PROCESSES) as pool:
            uses = sum(pool.starmap(use, [(folder, m, i) for i in range(PROCESSES)], chunksize=1))
        elapsed = time.monotonic() - begin
        perf.send_signal(2)
        perf.wait()
        shown = subprocess.run(["perf", "lock", "contention", "-i", recording],
                               capture_output=True, text=True)  # fmt: skip
        text = Path(folder, "locks.txt")
        text.write_text(shown.stdout + shown.stderr)
        locks = contended.load(text)
    ours = locks[[n.endswith("(rwsem:W)") and any(c in n for c in CALLERS) for n in locks.index]]
    return uses, int(ours["contentions"].sum()), float(ours["wait"].sum()), elapsed


def main() -> None:
    """Alternate runs with one directory and with several."""
    where = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm"
    with open(TABLE, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["run", "directories", "acquisitions", "contentions", "wait_us", "elapsed"])
        for number in range(1, RUNS + 1):
            for m in (1, DIRECTORIES):
                uses, contentions, wait, elapsed = run(m, where)
                table.writerow(
                    [number, m, uses, contentions, f"{1e6 * wait:.2f}", f"{elapsed:.3f}"]
                )
                file.flush()


if __name__ == "__main__":
    main()
