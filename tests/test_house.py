"""The house: what its wings show, and that imports run downwards only."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import nummodel

HOME = Path(nummodel.__file__).parent
WINGS = ("models", "fits", "records", "answers", "reports")
#: What a room may import from, by the floor that it is on; what is not listed is on the lowest.
FLOORS = {
    "__main__": 7,
    "cli": 6,
    **dict.fromkeys(("answers", "measure", "sweeps", "widgets", "reports"), 5),
    "cluster": 4,
    **dict.fromkeys(("fits", "records"), 3),
    "models": 2,
}
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


def part(path):
    """Wing, or room of the ground floor, of a path such as nummodel.fits.compare."""
    return path.split(".")[1] if "." in path else ""


@pytest.mark.parametrize("path", sorted(HOME.rglob("*.py")), ids=lambda p: str(p.relative_to(HOME)))
def test_imports_run_downwards(path):
    place = path.relative_to(HOME).with_suffix("").parts
    here = place[0] if len(place) > 1 or place[0] in FLOORS else "ground"
    floor = FLOORS.get(here, 1)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nummodel"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                there = part(name)
                assert (
                    there == here
                    or FLOORS.get(there, 1) < floor
                    or floor == 1 == FLOORS.get(there, 1)
                ), f"{here} imports {name}"
