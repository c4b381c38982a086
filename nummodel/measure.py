"""Run a load generator at several loads, beside vmstat and iostat, into a folder that can be read.

Each run has files of its own, named by its load and repeat: `8-r2.command.txt`, and
`8-r2.vmstat.txt` beside it. Where a limit of processor time holds, such as
that of a container, `8-r2.cgroup.txt` has what Linux counts of it before and after the run. A run
that was finished is not repeated by the same command.
"""

import os
import random
import shlex
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from nummodel._programs import Programs
from nummodel.errors import InputError, tell
from nummodel.records import folder as folders
from nummodel.records import readers
from nummodel.records.readers import cgroup

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
#: Runs of a folder, at most: with the files of four programs it can still be read.
RUNS = folders.MOST // 4


class Run(NamedTuple):
    """One run: its load, and which repeat of it this is, from 1 on."""

    N: int
    repeat: int

    def file(self, folder: Path, what: str) -> Path:
        """The file of what one program printed."""
        return folder / f"{self.N}-r{self.repeat}.{what}.txt"


def measure(command: Sequence[str], loads: Sequence[int], repeat: int, folder: Path) -> int:
    """Run the command at each load, `repeat` times, in an order drawn at random; how many failed.

    `{N}` in an argument of the command stands for the load. There is no shell. A run ends with
    all processes that it started. A signal ends the run that is under way and raises Stopped; the
    runs that were finished are kept. Raises InputError for what cannot be run.
    """
    try:
        _prepare(command, len(loads) * repeat, folder)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}, expected a folder to write to") from None
    todo = _todo([Run(N, i + 1) for i in range(repeat) for N in loads], folder)
    if missing := [name for name in WATCHERS if not shutil.which(name)]:
        tell(f"{' and '.join(missing)} not installed: utilisations are not measured")
    failed, in_a_row, began = 0, 0, time.monotonic()
    with Programs() as programs:
        for done, run in enumerate(todo):
            left = (time.monotonic() - began) / max(1, done) * (len(todo) - done)
            rest = f", {left:.0f} s left" if left < 100 else f", {left / 60:.0f} min left"
            tell(f"run {done + 1} of {len(todo)}: N = {run.N}{rest * (done > 0)}")
            why = _one(command, run, folder, programs)
            failed, in_a_row = failed + bool(why), in_a_row + 1 if why else 0
            if why:
                tell(f"N = {run.N}: {why}")
            if in_a_row == FAILURES:
                tell(f"{FAILURES} runs failed one after another: the rest is not tried")
                return failed + len(todo) - done - 1
    return failed


def _prepare(command: Sequence[str], runs: int, folder: Path) -> None:
    """Make the folder of a command that can be run, without parts of runs that were killed."""
    if not any(PLACE in part for part in command):
        raise InputError(f"measure: no {PLACE} in the command, expected it where the load stands")
    if not shutil.which(command[0]):
        raise InputError(f"measure: {command[0]}: no such program, expected one that can be run")
    if runs > RUNS:
        raise InputError(f"measure: {runs:,} runs, expected at most {RUNS:,}")
    folder.mkdir(parents=True, exist_ok=True)
    before, line = folder / COMMAND, os.fsencode(shlex.join(command))
    other = before.read_bytes() if before.exists() else b""  # also where the disk was full
    if other and other != line:
        raise InputError(
            f"{folder}: has runs of another command ({os.fsdecode(other)}), expected the same "
            "command, or another folder (--output)"
        )
    if not other:
        before.write_bytes(line)
    for part in folder.glob("[0-9]*-r[0-9]*.part"):
        part.unlink()


def _todo(every: list[Run], folder: Path) -> list[Run]:
    """The runs that are not finished, in an order drawn at random."""
    todo = [run for run in every if not run.file(folder, "command").exists()]
    if len(todo) < len(every):
        tell(f"{len(every) - len(todo)} of {len(every)} runs are there already")
    random.shuffle(todo)
    return todo


def _one(command: Sequence[str], run: Run, folder: Path, programs: Programs) -> str:
    """Run the command once; why it failed, if it did. Whole outputs get their names at the end."""
    names = ["command", *filter(shutil.which, WATCHERS)]
    part = {name: run.file(folder, name).with_suffix(".part") for name in names}
    plain = os.environ | {"LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
    arguments = [text.replace(PLACE, str(run.N)) for text in command]
    try:
        try:
            for name in names[1:]:
                programs.start(WATCHERS[name], part[name], plain)
            before = _limits()
            code = programs.wait(programs.start(arguments, part["command"]))
            counts = _limited(before, _limits())
        finally:
            programs.end()
        try:
            figures = _figures(run, part["command"], code)
        except InputError as error:
            kept = part["command"].with_suffix(".failed")
            part["command"].replace(kept)
            return f"{error}; its output is in {kept}"
        if counts:
            part["cgroup"] = run.file(folder, "cgroup").with_suffix(".part")
            part["cgroup"].write_text(counts)
        for name in reversed(part):  # the command's file is the last: then the run is whole
            part[name].replace(run.file(folder, name))
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}"
    finally:
        for path in part.values():
            with suppress(OSError):
                path.unlink()
    tell(figures)
    return ""


def _figures(run: Run, output: Path, code: int) -> str:
    """What was measured, in words. Raises InputError if nothing was."""
    if code:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - 4096))
            last = file.read().decode(errors="replace").strip().split("\n")[-1]
        raise InputError(f"exit code {code}: {last[:200] or 'no output'}")
    try:
        table = readers.read(output, n=run.N)[1].table
        wrong = folders.unfit(table) if {"N", "X"} <= set(table) else "no columns N and X"
    except InputError as error:
        wrong = str(error).removeprefix(str(output)).lstrip(": ").split(", expected")[0]
    if wrong:
        expected = "expected an output of a load generator, or a table with N and X"
        raise InputError(f"{wrong}, {expected}")
    row = table.iloc[-1]
    if row["N"] != run.N:
        tell(f"warning: the output says N = {row['N']:g}, and {run.N} was asked for")
    return f"N = {run.N}: X = {row['X']:.6g} 1/s"


def _limits() -> dict[Path, str]:
    """The text of `cpu.stat`, by its path, for the control group that this program is in and for
    all groups that contain this group.
    """
    found: dict[Path, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, own = line.split(":", 2)
            roots = ROOTS if "cpu" in kinds.split(",") else ROOTS[:1] * (not kinds)
            groups = (own, *map(str, Path(own).parents))
            for path in (Path(root + group, "cpu.stat") for root in roots for group in groups):
                with suppress(OSError):
                    found[path] = path.read_text()
    return found


def _limited(before: dict[Path, str], after: dict[Path, str]) -> str:
    """The texts from before and after a run, of the group that was stopped most often in this run;
    an empty text if no group has a limit.
    """

    def more(path: Path, name: str) -> int:
        first, last = (dict(cgroup.COUNT.findall(texts[path])) for texts in (before, after))
        return int(last.get(name, 0)) - int(first.get(name, 0))

    groups = [path for path in before if path in after and more(path, "nr_periods") > 0]
    most = max(groups, key=lambda path: more(path, "nr_throttled"), default=None)
    return before[most] + after[most] if most else ""
