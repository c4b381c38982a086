"""What a fresh machine gets: the lock, the environment, the wheel, and what an import costs."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

import nummodel

pytestmark = pytest.mark.xdist_group("package")  # one process builds one wheel
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()


def names(requirements):
    return {re.split(r"[^\w.-]", r)[0].lower().replace("_", "-") for r in requirements}


def test_the_lock_holds_no_address_and_everything_that_is_needed():
    assert "://" not in LOCK
    locked = names(LOCK.splitlines())
    assert names(PROJECT["dependencies"]) <= locked
    for extra in PROJECT["optional-dependencies"].values():
        assert names(extra) <= locked


def test_environment_yml_agrees_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, by_pip = environment["dependencies"]
    assert python.removeprefix("python=") in PROJECT["requires-python"] and pip == "pip"
    assert by_pip == {"pip": ["--constraint requirements.lock", "--editable ."]}
    assert environment["name"] == PROJECT["name"]


def test_versions_agree():
    assert nummodel.__version__ == PROJECT["version"]
    assert f"## {nummodel.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize(
    "statement, may",
    [
        ("import nummodel", set()),
        ("from nummodel import scaling, operational, queueing", {"numpy"}),
        ("from nummodel import cli", {"click"}),
        ("from nummodel import fit, data, claims", {"numpy"}),
    ],
)
def test_heavy_libraries_wait_until_they_are_used(statement, may):
    heavy = {"numpy", "click", "sympy", "scipy", "pandas", "matplotlib", "papermill", "IPython"}
    code = f"{statement}; import sys; print(*set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(loaded.stdout.split()) & heavy == may


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_data_and_notebooks_travel_in_the_wheel(wheel):
    inside = set(ZipFile(wheel).namelist())
    for kind in ("data/*.csv", "data/datapackage.json", "notebooks/*.ipynb"):
        assert list(ROOT.glob(kind))
        assert {f"nummodel/shipped/{p.relative_to(ROOT)}" for p in ROOT.glob(kind)} <= inside


def test_the_wheel_reports_from_an_empty_folder(wheel, tmp_path):
    """In an environment of its own, which sees the libraries of this one but not this checkout."""
    home, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/*/site-packages")
    ZipFile(wheel).extractall(packages)
    libraries = Path(yaml.__file__).parent.parent
    (packages / "libraries.pth").write_text(f"{libraries}\n")
    python = home / "bin" / "python"
    environment = os.environ | {"JUPYTER_PATH": str(Path(sys.prefix) / "share" / "jupyter")}

    def run(*command):
        return subprocess.run(
            [python, *command], cwd=empty, env=environment, capture_output=True, text=True
        )

    where = run("-c", "import nummodel; print(nummodel.__file__)").stdout
    assert where.startswith(str(packages))
    done = run("-m", "nummodel", "report", "01")
    assert (done.returncode, done.stdout) == (0, "report/index.html\n"), done.stderr
    assert (empty / "report" / "01-scaling-laws.html").stat().st_size > 50_000
    assert {p.name for p in empty.iterdir()} == {"report"}
