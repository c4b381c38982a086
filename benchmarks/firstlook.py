"""How long a newcomer waits for the first `make report`: before and after a change, in turn.

    python benchmarks/firstlook.py BEFORE AFTER

BEFORE and AFTER are checkouts. Each is cloned, without .venv, and reported with HOME and PATH as
its only environment: seconds to the first line, to the first index that links to a page, and to the
end. Packages come from uv's cache in HOME, if it has them.
"""

import os
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

LINK = re.compile(r'href="(\d\d-[^"]*\.html)"')


def main() -> None:
    print(
        "| checkout | load before | first line [s] | first index with a page [s] | all of it [s] |"
    )
    print("|---|---|---|---|---|")
    for checkout in sys.argv[1:]:
        load = os.getloadavg()[0]
        waited = " | ".join(f"{seconds:.1f}" for seconds in look(checkout))
        print(f"| {checkout} | {load:.1f} | {waited} |", flush=True)


def look(checkout: str) -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", checkout, str(clone)], check=True)
        environment = {name: os.environ[name] for name in ("HOME", "PATH")}
        start, line, index = perf_counter(), 0.0, 0.0
        making = subprocess.Popen(
            ["make", "report"],
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = making.stdout.fileno()
        text = b"start"
        while text:
            if select.select([said], [], [], 0.05)[0]:
                text = os.read(said, 65536)
                line = line or perf_counter() - start
            if not index and readable(clone / "report"):
                index = perf_counter() - start
        if making.wait() != 0:
            sys.exit(f"{checkout}: make report failed")
        return line, index, perf_counter() - start


def readable(report: Path) -> bool:
    """Whether there is an index that links to a page that is there."""
    index = report / "index.html"
    links = LINK.findall(index.read_text(encoding="utf-8")) if index.exists() else []
    return any((report / link).exists() for link in links)


if __name__ == "__main__":
    main()
