"""What a fresh machine gets: the lock, the environment, the wheel, and what an import costs."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib import metadata
from itertools import chain
from pathlib import Path
from shutil import copy, unpack_archive, which
from zipfile import ZipFile

import pytest
import yaml
from quick import slow

import nummodel

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
LOCK = (ROOT / "requirements.lock").read_text()
HASHES = (ROOT / "requirements.hashes").read_text()
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def names(requirements):
    return {re.split(r"[^\w.-]", r)[0].lower().replace("_", "-") for r in requirements}


def test_the_lock_holds_no_address_and_everything_that_is_needed():
    assert "://" not in LOCK
    locked = names(LOCK.splitlines())
    assert names(BASE) <= locked
    for extra in EXTRAS.values():
        assert names(extra) <= locked


def test_the_hashes_are_those_of_the_lock():
    assert "://" not in HASHES
    entries = re.split(r"\n(?! )", HASHES.strip())
    assert [entry.split(" \\\n")[0] for entry in entries] == LOCK.splitlines()
    for entry in entries:
        assert re.fullmatch(r"[^\n]+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry), entry


@pytest.mark.parametrize("requirement", [*BASE, *chain(*EXTRAS.values())])
def test_every_dependency_has_a_lower_bound_and_no_other(requirement):
    assert re.fullmatch(r"[\w-]+>=[\d.]+", requirement)


def sources(folder):
    """Each program below a folder, notebooks too, as a syntax tree."""
    for path in (ROOT / folder).rglob("*.py"):
        yield ast.parse(path.read_text())
    for path in (ROOT / folder).rglob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code":
                yield ast.parse("".join(cell["source"]))


def imported(folder):
    """The distributions whose modules the programs of a folder import."""
    modules = set()
    for node in (node for tree in sources(folder) for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.partition(".")[0])
    ours = {path.stem for wing in ("tests", "benchmarks") for path in (ROOT / wing).glob("*.py")}
    elsewhere = {"extrap"}  # which `benchmarks/forecast.py` gives an environment of its own
    modules -= sys.stdlib_module_names | ours | elsewhere | {"nummodel"}
    known = metadata.packages_distributions()
    return names(name for module in modules for name in known.get(module, [module]))


@pytest.mark.parametrize(
    "folder, extras",
    [
        ("nummodel", ["notebooks", "excel", "cluster"]),
        ("notebooks", ["notebooks"]),
        ("benchmarks", ["notebooks", "test", "cluster"]),
        ("tests", ["notebooks", "test", "ui", "cluster"]),
    ],
)
def test_what_is_imported_is_declared(folder, extras):
    declared = names([*BASE, *chain(*(EXTRAS[extra] for extra in extras))])
    assert imported(folder) and imported(folder) <= declared


def brought(requirements):
    """The distributions that these requirements bring, on any platform, themselves included."""
    found, missing = set(), names(requirements)
    while missing:
        name = missing.pop()
        found.add(name)
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another platform
            continue
        missing |= names(r for r in needed if "extra ==" not in r) - found
    return found


def without_extras(code):
    """Run a program that can import only what the package has without its extras."""
    kept = brought(BASE) | {"nummodel"}
    blocked = [m for m, by in metadata.packages_distributions().items() if not names(by) & kept]
    assert {"IPython", "papermill", "jupyterlab"} <= set(blocked)
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))"
    return subprocess.run(
        [sys.executable, "-c", f"{block}\n{code}"], capture_output=True, text=True
    )


COMMAND = "from nummodel.cli import main; sys.argv[1:] = {!r}; main()"


@pytest.mark.parametrize(
    "code, printed",
    [
        (COMMAND.format(["fit", "raytracer"]), "chosen: "),
        (COMMAND.format(["list"]), "usl"),
        slow(
            "from nummodel import fits, plot\n"
            "from nummodel.models import locks, networks, numa, queueing, scaling, storage\n"
            "print(networks.solve([networks.queue(0.5)], 1).X)",
            "2.0",
        ),
        (
            "from nummodel.records import claims\n"
            "claims.check('one', model=1, documented=(0, 2), kind='audit')",
            "holds: one",
        ),
    ],
)
def test_formulas_fits_and_tables_need_no_extra(code, printed):
    done = without_extras(code)
    assert done.returncode == 0 and printed in done.stdout, done.stderr


def test_a_report_without_its_extra_says_how_to_get_it():
    done = without_extras(COMMAND.format(["report", "01"]))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"nummodel: .*: pip install 'nummodel\[notebooks\]'\n", done.stderr)


def test_environment_yml_agrees_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, by_pip = environment["dependencies"]
    assert python.removeprefix("python=") in PROJECT["requires-python"] and pip == "pip"
    assert by_pip == {"pip": ["--constraint requirements.lock", "--editable .[notebooks]"]}
    assert environment["name"] == PROJECT["name"]


def test_what_the_project_says_of_itself_agrees():
    """Also its addresses, once it has any."""
    assert PROJECT["authors"] == CITATION["authors"]
    assert PROJECT["keywords"] == CITATION["keywords"]
    addresses = {CITATION[key] for key in ("url", "repository-code") if key in CITATION}
    assert set(PROJECT.get("urls", {}).values()) == addresses


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_and_end_in_time(path):
    text = path.read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 180
        for step in job["steps"]:
            called = re.match(r"make ([a-z -]+)$", step.get("run", ""))
            assert not called or set(called[1].split()) <= set(targets)
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[\d.]+", action)


def test_what_builds_the_wheel_is_pinned():
    (build,) = re.findall(r"uv build (.*)", (ROOT / "Makefile").read_text())
    assert "--build-constraint requirements.hashes --require-hashes" in build


def test_versions_agree():
    assert nummodel.__version__ == PROJECT["version"]
    assert f"## {nummodel.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize(
    "statement, may",
    [
        ("import nummodel", set()),
        ("from nummodel.models import scaling, operational, queueing", {"numpy"}),
        ("from nummodel import cli", {"click"}),
        ("from nummodel.sweeps import sweep", {"numpy"}),
        ("from nummodel.fits import fit; from nummodel.records import data, claims", {"numpy"}),
        (
            "from nummodel.answers import study; study.fit_table('raytracer').document()",
            {"numpy", "scipy"},
        ),
    ],
)
def test_heavy_libraries_wait_until_they_are_used(statement, may):
    heavy = {"numpy", "click", "sympy", "scipy", "pandas", "matplotlib", "papermill", "IPython"}
    heavy |= {"dask", "distributed", "pyarrow"}
    code = f"{statement}; import sys; print(*set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(loaded.stdout.split()) & heavy == may


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if (ROOT / ".git").exists() and not which("git"):
        pytest.skip("a checkout without git, which is not built")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_data_and_notebooks_travel_in_the_wheel(wheel):
    inside = set(ZipFile(wheel).namelist())
    for kind in ("data/*.csv", "data/datapackage.json", "notebooks/*.ipynb", "docs/questions.md"):
        assert list(ROOT.glob(kind))
        assert {f"nummodel/shipped/{p.relative_to(ROOT)}" for p in ROOT.glob(kind)} <= inside


def test_the_wheel_tells_that_it_is_typed(wheel):
    assert "nummodel/py.typed" in ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs programs in an empty folder, with the wheel in an environment of its own, which sees the
    libraries of this one but not this checkout.
    """
    home, empty = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("empty")
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
    return empty, run


@pytest.mark.slow
def test_the_wheel_reports_from_an_empty_folder(installed):
    empty, run = installed
    done = run("-m", "nummodel", "report", "01")
    assert (done.returncode, done.stdout) == (0, "report/index.html\n"), done.stderr
    assert (empty / "report" / "01-scaling-laws.html").stat().st_size > 50_000
    assert {p.name for p in empty.iterdir()} == {"report"}


@pytest.mark.slow
def test_two_commands_lead_to_a_sweep_with_its_dashboard(installed):
    """Those of docs/cluster.md, after the one that installs; `docs/sweep.py` is what it quotes."""
    empty, run = installed
    text = (ROOT / "docs" / "cluster.md").read_text()
    script = (ROOT / "docs" / "sweep.py").read_text()
    quoted = re.search(r"```python\n(here = .*?)```", text, re.S)[1]
    without_comments = re.sub(r"  #.*", "", script)
    assert all(line.strip() in without_comments for line in quoted.splitlines())
    install, make, read = re.search(r"```sh\n(.*?)```", text, re.S)[1].splitlines()
    assert install == "pip install '.[cluster]'" and make == "python docs/sweep.py"
    (empty / "docs").mkdir()
    (empty / "docs" / "sweep.py").write_text(script)
    done = run("docs/sweep.py")
    assert done.returncode == 0, done.stderr
    assert re.match(r"dashboard: http://127\.0\.0\.1:\d+/status\n100000 points", done.stdout)
    code = re.fullmatch('python -c "(.*)"', read)[1]
    # With one customer nobody waits: R is the sum of the demands, and X (R + Z) is N everywhere.
    more = "t = pandas.read_parquet('swept'); one = t[t.N == 1]"
    more += "; print(abs(one.R - one.D_cpu - one.D_lock).max() < 1e-12)"
    more += "; print(abs(t.X * (t.R + t.Z) / t.N - 1).max() < 1e-12)"
    shown = run("-c", f"{code}; {more}")
    assert shown.stdout.endswith("True\nTrue\n"), shown.stderr
    assert "100000" in shown.stdout


def tracked(*folders):
    command = ["git", "ls-files", *folders]
    if not which("git"):
        return set()
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return {path for path in listed.stdout.splitlines() if (ROOT / path).is_file()}


@pytest.fixture(scope="module", params=["git", "no git"])
def littered(request, tmp_path_factory):
    """A copy of the checkout in which somebody has worked, and the same without git."""
    return littered_by(request.param == "git", tmp_path_factory.mktemp("littered"))


def littered_by(git, folder):
    if not tracked("data"):
        pytest.skip("no checkout of git")
    for path in tracked() | {"hatch_build.py"}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / path, folder / path)
    if git:
        for command in ("init --quiet", "add --all"):
            subprocess.run(["git", *command.split()], cwd=folder, check=True)
        (folder / "notebooks" / "99-mine.ipynb").write_text("{}")
        (folder / "nummodel" / "mine.py").write_text("")
    for stray in (
        *("data/my-private.csv", "notebooks/.env", "nummodel/__pycache__/cli.cpython-311.pyc"),
        *("notebooks/.ipynb_checkpoints/01-scaling-laws-checkpoint.ipynb", "tests/.cache/x"),
    ):
        (folder / stray).parent.mkdir(parents=True, exist_ok=True)
        (folder / stray).write_text("mine")
    if os.name == "posix" and os.geteuid() == 0:  # git lists it to others only if told to
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, 1234, 1234, follow_symlinks=False)
    return folder


def built(folder, kind, into, **environment):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    given = os.environ | environment
    subprocess.run(command, cwd=folder, env=given, check=True, capture_output=True)
    (path,) = into.iterdir()
    return path


def test_without_the_list_of_git_nothing_is_built(tmp_path):
    broken = littered_by(True, tmp_path / "broken")
    (broken / ".git" / "HEAD").unlink()
    with pytest.raises(subprocess.CalledProcessError) as failed:
        built(broken, "wheel", tmp_path / "wheel")
    assert b"ls-files" in failed.value.stderr


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_checkout_is_not_built_where_git_is_missing_or_tracks_nothing(kind, tmp_path):
    """Each refusal is one line, which says why and what helps."""
    checkout, into = littered_by(True, tmp_path / "checkout"), tmp_path / "dist"
    with pytest.raises(subprocess.CalledProcessError) as failed:
        built(checkout, kind, into, PATH=str(tmp_path))
    assert re.fullmatch(rb"[^\n]* git is not in PATH\. Install git, .*\n", failed.value.stderr)
    (checkout / ".git" / "index").unlink()
    with pytest.raises(subprocess.CalledProcessError) as failed:
        built(checkout, kind, into)
    assert re.fullmatch(rb"[^\n]* git tracks no file here\. .*`git add`\.\n", failed.value.stderr)
    assert not list(into.glob("*"))


def in_wheel(path):
    inside = [name for name in ZipFile(path).namelist() if ".dist-info/" not in name]
    assert len(inside) == len(set(inside))
    return {name.removeprefix("nummodel/shipped/") for name in inside}


def test_wheel_and_sdist_contain_what_git_tracks(littered, tmp_path):
    """The sdist, too, and the wheel that is made of it."""
    expected = tracked("nummodel", "data", "notebooks", "docs/questions.md")
    assert in_wheel(built(littered, "wheel", tmp_path / "wheel")) == expected
    unpack_archive(built(littered, "sdist", tmp_path / "sdist"), tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    inside = {p.relative_to(unpacked).as_posix() for p in unpacked.rglob("*") if p.is_file()}
    assert inside <= tracked() | {"PKG-INFO", "hatch_build.py"}
    assert expected | tracked("tests") | {"Makefile", "LICENSE"} <= inside
    assert in_wheel(built(unpacked, "wheel", tmp_path / "again")) == expected
