"""What attacks need: odd words, mutations, calls of the command, and a judge of what it answers."""

import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import nbformat
import psutil
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from limited import limited

LONGEST = 20.0  # seconds that a call may take
GUARD = 3 * LONGEST  # seconds of the clock after which a call is ended
WORDS = [
    *"0 1 -1 1e308 1e-320 nan inf -inf 9e999 1,5 1.234,5 0x10 1_000 N X R tps latency_ms".split(),
    *"N>4 N== N>nan all usl log relative null true {} [] [[1]] {a:1} &a *a !!python/object".split(),
    *"= + - @SUM(A1) =1+1 | # % ' \" , ; : 01 21 ../x /dev/full . notebook \\".split(),
    *"\u0131 \u2212 \u00bd \u221e \u00e9".split(),
    *("", " ", "\t", "\r", "\n", "\0", "\x1b[31m", "\u2028", "\ufeff", "\ud800"),
    *("9" * 5000, "a" * 5000),
]

ODD = [*"0 1 2 3 7 64 1e3 1e9 1e15 1e30 1e300 1e-9 1e-300 0.1 -1 1,5 n/a".split(), ""]


class Attack:
    """What a part has tried, and what went wrong."""

    def __init__(self, seed: int, share: float, folder: Path):
        self.random, self.share, self.folder = random.Random(seed), share, folder
        self.codes: Counter = Counter()
        self.wrong: list[str] = []
        self.slowest = 0.0

    def rounds(self, number: int) -> range:
        return range(max(1, round(number * self.share)))

    def judge(self, what: str, code: object, out: str, err: str, seconds: float, may=()) -> None:
        """Note a call, and whatever is wrong with it."""
        self.codes[code] += 1
        self.slowest = max(self.slowest, seconds)
        faults = {
            f"exit code {code}": code not in (0, 1, 2, *may),
            "traceback": "Traceback" in err,
            f"{seconds:.0f} s": seconds > LONGEST,
            "not one line": code == 2
            and not (err.startswith("nummodel: ") and err.count("\n") == 1 and len(err) < 2000),
            "escapes": any(c in out + err for c in "\x1b\x00"),
        }
        said = [fault for fault, there in faults.items() if there]
        if said:
            self.wrong.append(f"{', '.join(said)}: {what[:300]!r}: {err[-300:]!r}")

    def main(self, *arguments: str) -> str:
        """Call `nummodel` in this process, and count its processor time, or that of the clock if it
        mostly waits; give what it prints.
        """
        from nummodel.cli import main

        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        start, began = sum(os.times()[:4]), time.perf_counter()  # children included
        code: object = 0
        signal.setitimer(signal.ITIMER_REAL, GUARD)
        try:
            with (
                mock.patch.object(sys, "argv", ["nummodel", *arguments]),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                main()
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"[:200]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        seconds, clock = sum(os.times()[:4]) - start, time.perf_counter() - began
        if seconds < clock / 4:  # it waited, for more than for a processor
            seconds = clock
        found, told = (self._text(stream) for stream in (out, err))
        self.judge(" ".join(arguments), code, found, told, seconds)
        return found if code == 0 else ""

    def call(self, what: str, call: Callable[[], object], limit: float) -> object:
        """What a function gives, within `limit` s of processor time; None if it refuses."""

        def answer() -> tuple[object, object]:
            try:
                return 0, call()
            except (ValueError, ArithmeticError):
                return 2, None
            except Exception as error:
                return f"{type(error).__name__}: {error}"[:200], None

        answered, seconds = limited(answer, LONGEST)
        code, result = answered or ("hang", None)
        self.codes[code] += 1
        self.slowest = max(self.slowest, seconds)
        self.expect(f"{what}: {code} after {seconds:.1f} s", code in (0, 2) and seconds <= limit)
        return result

    @staticmethod
    def _text(stream: io.TextIOWrapper) -> str:
        stream.flush()
        return stream.buffer.getvalue().decode("utf-8", "replace")

    def start(self, *arguments: object, **options) -> subprocess.Popen:
        """Start `nummodel report` with temporary files of its own."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        own = os.environ | {"TMPDIR": str(self.folder / "tmp")}
        command = [sys.executable, "-m", "nummodel", "report", *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        reset = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
        return subprocess.Popen(command, cwd=self.folder, env=own, **pipes | reset | options)

    @staticmethod
    def needed(path: Path, runs: int = 1) -> float:
        """The notebooks' own time [s]: what plain Jupyter takes now for `runs`, two at a time."""
        start = time.perf_counter()
        NotebookClient(nbformat.read(path, as_version=4)).execute()
        return (time.perf_counter() - start) * max(1.0, runs / 2)

    def finish(self, what: str, process: subprocess.Popen, may=(), needed=0.0) -> str:
        """Wait for its end, `needed` s of which are the notebooks' own; give what it told."""
        start = time.perf_counter()
        try:
            out, err = process.communicate(timeout=needed + GUARD)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        seconds = max(0.0, time.perf_counter() - start - needed)
        self.judge(what, process.returncode, out, err, seconds, may)
        gone = time.perf_counter() + LONGEST
        while (left := self.running()) and time.perf_counter() < gone:
            time.sleep(0.2)
        self.expect(f"{what}: left running: {left}", not left)
        return err

    def running(self) -> list[str]:
        """The processes that this attack has started, with all that these have started."""
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("TMPDIR") == str(self.folder / "tmp"):
                    left.append(f"{process.pid} {process.name()}")
        return left

    def expect(self, what: str, holds: bool) -> None:
        if not holds:
            self.wrong.append(what)

    def notebook(self, name: str, *sources: str) -> Path:
        cells = [new_markdown_cell("# Is it?\n\nYes."), new_code_cell("size: int = 3")]
        cells[1].metadata["tags"] = ["parameters"]
        path = self.folder / f"{name}.ipynb"
        nbformat.write(new_notebook(cells=cells + [new_code_cell(s) for s in sources]), path)
        return path

    def mutated(self, text: str) -> str:
        """The text with up to six words or lines exchanged, repeated, moved or lost."""
        for _ in range(self.random.randint(0, 6)):
            at, to = sorted(self.random.randint(0, len(text)) for _ in range(2))
            to = min(to, at + self.random.choice([0, 1, 3, 30]))
            piece = self.random.choice([self.random.choice(WORDS), text[at:to] * 2, "", "\n"])
            text = text[:at] + piece + text[to:]
        return text

    def mutated_rows(self, text: str) -> str:
        """A table in which up to four cells, rows or columns are changed: mostly still a table."""
        pick = self.random.choice
        rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
        for _ in range(self.random.randint(1, 4)):
            what, (one, other) = self.random.random(), (pick(rows), pick(rows))
            if what < 0.5:
                one[self.random.randrange(len(one))] = pick([*ODD, pick(other), pick(other)])
            elif what < 0.7:
                rows.insert(self.random.randint(0, len(rows)), one.copy())
            elif what < 0.8:
                rows[1:] = self.random.sample(rows[1:], self.random.randint(0, len(rows) - 1))
            elif what < 0.9:
                one.append(pick(other))
            else:
                at, to = (self.random.randrange(len(rows[0])) for _ in range(2))
                for row in rows:
                    row.insert(to, row.pop(min(at, len(row) - 1)) if row else "")
        return "\n".join(map(",".join, rows))

    def mutated_tree(self, tree):
        """A tree of JSON in which something is lost, or replaced by something else."""
        if self.random.random() < 0.15 or not isinstance(tree, (dict, list)) or not tree:
            word = self.random.choice(WORDS)
            return self.random.choice([word, None, 3, -1e308, [], {}, [word], {word: word}, True])
        tree = tree.copy()
        key = self.random.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        if self.random.random() < 0.3:
            del tree[key]
        else:
            tree[key] = self.mutated_tree(tree[key])
        return tree
