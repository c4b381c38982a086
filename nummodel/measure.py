"""Run a load generator at several loads, beside vmstat and iostat, into a folder that can be read.

Each run has files of its own, named by its load and repeat: `8-r2.command.txt`, and
`8-r2.vmstat.txt` beside it. Where a limit of processor time holds, such as
that of a container, `8-r2.cgroup.txt` has what Linux counts of it before and after the run. A run
that was finished is not repeated by the same command.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from nummodel.errors import InputError, tell
from nummodel.records import readers

#: What is run beside the command, if it is installed: samples of each second.
WATCHERS = {"vmstat": ["vmstat", "-n", "1"], "iostat": ["iostat", "-x", "1"]}
#: Where Linux has the control groups of processors, in versions 2 and 1.
GROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
#: Where the load stands in the command.
PLACE = "{N}"
#: Runs that may fail one after another before the rest is given up.
FAILURES = 3


class Run(NamedTuple):
    """One run: its load, and which repeat of it this is, from 1 on."""

    N: int
    repeat: int

    def file(self, folder: Path, what: str) -> Path:
        """The file of what one program printed."""
        return folder / f"{self.N}-r{self.repeat}.{what}.txt"


def measure(command: Sequence[str], loads: Sequence[int], repeat: int, folder: Path) -> int:
    """Run the command at each load, `repeat` times, in an order drawn at random; how many failed.

    `{N}` in an argument of the command stands for the load. There is no shell. When the work is
    interrupted, the command that runs and all its children are ended, and the runs that were
    finished are kept. Raises InputError for what cannot be run.
    """
    if not any(PLACE in part for part in command):
        raise InputError(f"measure: no {PLACE} in the command, expected it where the load stands")
    if not shutil.which(command[0]):
        raise InputError(f"measure: {command[0]}: no such program, expected one that can be run")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}, expected a folder") from None
    every = [Run(N, i + 1) for i in range(repeat) for N in loads]
    todo = [run for run in every if not run.file(folder, "command").exists()]
    if len(todo) < len(every):
        tell(f"{len(every) - len(todo)} of {len(every)} runs are there already")
    random.shuffle(todo)
    missing = [name for name, how in WATCHERS.items() if not shutil.which(how[0])]
    if missing:
        tell(f"{' and '.join(missing)} not installed: utilisations are not measured")
    failed, in_a_row, began = 0, 0, time.monotonic()
    for done, run in enumerate(todo):
        left = (time.monotonic() - began) / done * (len(todo) - done) if done else None
        tell(
            f"run {done + 1} of {len(todo)}: N = {run.N}"
            + (f", {_time(left)} left" if left else "")
        )
        good = _one(command, run, folder)
        failed, in_a_row = failed + (not good), 0 if good else in_a_row + 1
        if in_a_row == FAILURES:
            tell(f"{FAILURES} runs failed one after another: the rest is not tried")
            return failed + len(todo) - done - 1
    return failed


def _one(command: Sequence[str], run: Run, folder: Path) -> bool:
    """Run the command once; whether it ended well. Outputs have their names when they are whole."""
    names = ["command", *(name for name, how in WATCHERS.items() if shutil.which(how[0]))]
    part = {name: run.file(folder, name).with_suffix(".part") for name in names}
    plain = os.environ | {"LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
    arguments = [text.replace(PLACE, str(run.N)) for text in command]
    try:
        with ExitStack() as stack:
            for name in names[1:]:
                watcher = _started(WATCHERS[name], part[name], plain)
                stack.callback(_ended, watcher, signal.SIGINT)
            before = _limit()
            child = _started(arguments, part["command"], None)
            stack.callback(_ended, child, signal.SIGTERM)
            code = child.wait()
            if before:
                part["cgroup"] = run.file(folder, "cgroup").with_suffix(".part")
                part["cgroup"].write_text(before + _limit())
        if code:
            last = part["command"].read_text(errors="replace").strip().split("\n")[-1]
            tell(f"N = {run.N}: exit code {code}: {last[:200]}")
            part["command"].replace(run.file(folder, "command").with_suffix(".failed"))
            return False
        for name in reversed(part):  # the command's file is the last: then the run is whole
            part[name].replace(run.file(folder, name))
    finally:
        for path in part.values():
            path.unlink(missing_ok=True)
    return _told(run, folder)


def _limit() -> str:
    """What Linux counts of the limit of processor time that holds here; nothing without a limit."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    own = [Path(line.split(":", 2)[2]) for line in groups if line.count(":") >= 2]
    inner_first = sorted({p for path in own for p in (path, *path.parents)}, key=str, reverse=True)
    for path in inner_first:
        for root in GROUPS:
            with suppress(OSError):
                text = Path(root + str(path), "cpu.stat").read_text()
                if re.search(r"^nr_periods [1-9]", text, re.MULTILINE):
                    return text
    return ""


def _started(arguments: Sequence[str], output: Path, env) -> subprocess.Popen:
    """A program in a session of its own, so that its children can be ended with it."""
    with output.open("wb") as file:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )


def _ended(child: subprocess.Popen, how: signal.Signals) -> None:
    """End a program and all its children; by force if they do not end within three seconds."""
    for sign in (how, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            child.wait(3)
            return


def _told(run: Run, folder: Path) -> bool:
    """Say what was measured, as far as a reader knows the output."""
    path = run.file(folder, "command")
    try:
        reading = readers.read(path)[1]
    except InputError as error:
        tell(f"warning: {error}")
        return True
    row = reading.table.iloc[-1]
    if {"N", "X"} <= set(reading.table) and row["N"] != run.N:
        tell(f"warning: {path.name} says N = {row['N']:g}, and {run.N} was asked for")
    if "X" in reading.table:
        tell(f"N = {run.N}: X = {row['X']:.6g} 1/s")
    return True


def _time(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
