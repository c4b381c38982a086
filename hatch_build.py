"""What wheel and sdist contain: the files that git tracks, and nothing that lies beside them."""

import json
import re
import subprocess
from pathlib import Path
from shutil import which

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Inside the wheel, data and notebooks of the checkout are below the package.
SHIPPED = {
    "wheel": {
        "nummodel": "nummodel",
        "data": "nummodel/shipped/data",
        "notebooks": "nummodel/shipped/notebooks",
        "docs/questions.md": "nummodel/shipped/docs/questions.md",
    },
    "sdist": {
        name: name
        for name in (
            *("nummodel", "data", "notebooks", "tests", "hatch_build.py", "Makefile"),
            *("requirements.lock", "requirements.hashes", "CHANGELOG.md", "docs/questions.md"),
        )
    },
}


class Tracked(BuildHookInterface):
    """Tells Hatch each file by its name."""

    def initialize(self, version: str, build_data: dict) -> None:
        if version == "editable":  # which refers to the checkout
            return
        root, places = Path(self.root), SHIPPED[self.target_name]
        found = tracked if (root / ".git").exists() else present
        for path in found(root, list(places)):
            top = next(top for top in places if f"{path}/".startswith(f"{top}/"))
            build_data["force_include"][str(root / path)] = places[top] + path.removeprefix(top)


def tracked(root: Path, tops: list[str]) -> list[str]:
    """The files that git tracks in a checkout. Ends the build if there is no git, or if git tracks
    none; raises CalledProcessError if git cannot list them.
    """
    # Git lists the files of a checkout of somebody else only if it is told that this is safe.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--", *tops]
    refusal = "This folder is a checkout, and a build contains only the files that git tracks; but"
    if not which("git"):
        raise SystemExit(f"{refusal} git is not in PATH. Install git, or build from the sdist.")
    listed = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    paths = [path for path in listed.stdout.split("\0") if (root / path).is_file()]
    if not paths:
        raise SystemExit(f"{refusal} git tracks no file here. Add the files with `git add`.")
    return paths


def present(root: Path, tops: list[str]) -> list[str]:
    """The files of an sdist or a source archive, which are no checkout: what is there, but nothing
    hidden or compiled, and no table without a card.
    """
    cards = json.loads((root / "data" / "datapackage.json").read_text(encoding="utf-8"))
    tables = {f"data/{card['path']}" for card in cards["resources"]} | {"data/datapackage.json"}
    files = [file for top in tops for file in [root / top, *(root / top).rglob("*")]]
    paths = [file.relative_to(root).as_posix() for file in files if file.is_file()]
    return [
        path
        for path in paths
        if not re.search(r"(^|/)\.|__pycache__", path)
        and (path in tables or not path.startswith("data/"))
    ]
