"""The command line without a process of its own, which would import everything again."""

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from typing import NamedTuple

import pytest

from nummodel.cli import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def nummodel(*arguments, cwd="."):
    """What `nummodel` with these arguments prints in the folder `cwd`, and its exit code.

    `test_the_installed_command` and some tests of reports start real processes.
    """
    out, err = (TextIOWrapper(BytesIO(), "utf-8", newline="") for _ in range(2))
    code = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["nummodel", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    for stream in (out, err):
        stream.flush()
    return Done(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def report(*arguments, cwd):
    """As `nummodel report` with these arguments. Kernels are forked from the servers of this
    process, which have imported everything already.
    """
    done = nummodel("report", *arguments, cwd=cwd)
    assert "cli.py" not in done.stderr, done.stderr
    return done
