"""Run a load generator at several loads, beside vmstat and iostat, into a folder that can be read.

Each run has files of its own, named by its load and repeat: `8-r2.command.txt`, and
`8-r2.vmstat.txt` beside it. Where a limit of processor time holds, such as
that of a container, `8-r2.cgroup.txt` has what Linux counts of it before and after the run. A run
that was finished is not repeated by the same command.
"""

import os
import random
import re
import shlex
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
from nummodel.records.readers import Reading

#: What is run beside the command, if it is installed: samples of each second.
WATCHERS = {"vmstat": ["vmstat", "-n", "-t", "1"], "iostat": ["iostat", "-x", "-t", "1"]}
#: The file with the command of a folder, as one line of a shell. Readers pass over hidden files.
COMMAND = ".command"
#: Where Linux has the control groups of processors, in versions 2 and 1.
ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
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
    line = shlex.join(command)
    before = folder / COMMAND
    if before.exists() and before.read_text() != line:
        raise InputError(
            f"{folder}: has runs of another command ({before.read_text()}), expected the same "
            "command, or another folder (--output)"
        )
    before.write_text(line)
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
            before = _limits()
            child = _started(arguments, part["command"], None)
            stack.callback(_ended, child, signal.SIGTERM)
            code = child.wait()
            if counts := _limited(before, _limits()):
                part["cgroup"] = run.file(folder, "cgroup").with_suffix(".part")
                part["cgroup"].write_text(counts)
        if code:
            last = part["command"].read_text(errors="replace").strip().split("\n")[-1]
            return _failed(run, part["command"], f"exit code {code}: {last[:200] or 'no output'}")
        try:
            reading = readers.read(part["command"])[1]
            if not {"N", "X"} <= set(reading.table):
                raise InputError(f"{part['command']}: no columns N and X")
        except InputError as error:
            why = str(error).removeprefix(str(part["command"])).lstrip(": ").split(", expected")[0]
            known = "sysbench, pgbench, wrk or k6, or a table with N and X"
            return _failed(run, part["command"], f"{why}, expected an output of {known}")
        for name in reversed(part):  # the command's file is the last: then the run is whole
            part[name].replace(run.file(folder, name))
    finally:
        for path in part.values():
            path.unlink(missing_ok=True)
    _tell_figures(run, reading)
    return True


def _failed(run: Run, output: Path, why: str) -> bool:
    """Keep the output of a run that failed, and say why it did."""
    kept = output.with_suffix(".failed")
    output.replace(kept)
    tell(f"N = {run.N}: {why}; its output is in {kept}")
    return False


def _limits() -> dict[Path, str]:
    """The text of `cpu.stat`, by its path, for the control group that this program is in and for
    all groups that contain this group.
    """
    with suppress(OSError):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        found = {}
        for _, kinds, own in lines:
            for root in ROOTS if "cpu" in kinds.split(",") else ROOTS[:1] if not kinds else ():
                for group in (Path(own), *Path(own).parents):
                    with suppress(OSError):
                        path = Path(root + str(group), "cpu.stat")
                        found[path] = path.read_text()
        return found
    return {}


def _limited(before: dict[Path, str], after: dict[Path, str]) -> str:
    """The texts from before and after a run, of the group that was stopped most often in this run;
    an empty text if no group has a limit.
    """

    def more(path: Path, name: str) -> int:
        counts = (re.search(rf"^{name} ([0-9]+)$", t[path], re.M) for t in (before, after))
        first, last = (int(found[1]) if found else 0 for found in counts)
        return last - first

    groups = [path for path in before if path in after and more(path, "nr_periods") > 0]
    most = max(groups, key=lambda path: more(path, "nr_throttled"), default=None)
    return before[most] + after[most] if most else ""


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


def _tell_figures(run: Run, reading: Reading) -> None:
    """Say what was measured."""
    row = reading.table.iloc[-1]
    if row["N"] != run.N:
        tell(f"warning: the output says N = {row['N']:g}, and {run.N} was asked for")
    tell(f"N = {run.N}: X = {row['X']:.6g} 1/s")


def _time(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
