"""The house: what its wings show. import-linter checks which module imports which."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import nummodel

HOME = Path(nummodel.__file__).parent
WINGS = ("models", "fits", "records", "answers", "reports")
PUBLIC = {
    f"nummodel{wing and '.'}{wing}.{name}"
    for wing in ("", *WINGS)
    for name in dir(importlib.import_module(f"nummodel{wing and '.'}{wing}"))
}
#: Imports one name, each in a process of its own that has imported nothing of ours before.
EACH = """
import os, sys
import matplotlib.figure, pandas, scipy.optimize, scipy.special, sympy
from importlib import import_module
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        package, _, name = path.rpartition(".")
        try:
            exec(f"from {package} import {name}")
            found = getattr(import_module(package), name)
            assert f"{package}." not in repr(type(found))
            os._exit(0)
        except BaseException as error:
            print(path, repr(error), flush=True)
            os._exit(1)
    os.waitpid(child, 0)
"""


def rooms(wing):
    """Modules and packages in a folder, without the private ones."""
    found = [path.stem for path in (HOME / wing).glob("*.py")]
    found += [path.parent.name for path in (HOME / wing).glob("*/__init__.py")]
    return {name for name in found if not name.startswith("_")}


@pytest.mark.slow
def test_each_public_name_is_imported_first():
    done = subprocess.run([sys.executable, "-c", EACH, *PUBLIC], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert len(PUBLIC) > 35


@pytest.mark.parametrize("wing", ["models", "records", "answers"])
def test_a_wing_shows_its_rooms_and_nothing_else(wing):
    assert set(dir(importlib.import_module(f"nummodel.{wing}"))) == rooms(wing)


@pytest.mark.parametrize("wing", ["", "fits", "reports"])
def test_a_wing_shows_nothing_that_is_private(wing):
    shown = dir(importlib.import_module(f"nummodel{wing and '.'}{wing}"))
    assert shown and not [name for name in shown if name.startswith("_")]


def test_what_a_wing_lacks_is_told():
    with pytest.raises(AttributeError, match=r"'nummodel\.models' has no attribute 'lock'"):
        nummodel.models.lock  # noqa: B018
