"""The files of a report: each appears whole, and never in the place of somebody else's.

Names of parts are a process' own, so that several reports can write into one folder.
"""

import os
import re
from collections.abc import Mapping
from errno import EEXIST
from pathlib import Path
from secrets import token_hex

#: In the head of every page and of the index.
GENERATOR = '<meta name="generator" content="nummodel">'
#: The key in an executed notebook's metadata that tells how its run went.
STAMP = "nummodel_run"
#: What a page as PDF ends with; programs that read PDF skip it.
PRINTED = b"% printed by nummodel\n"
#: What results.csv begins with.
COLUMNS = ("run", "notebook", "status", "seconds", "claims", "claims that hold", "error")

PART = re.compile(r"\.nummodel-(\d{1,9})-[0-9a-f]{8}\.part")
OURS = {
    ".html": lambda text: GENERATOR.encode() in text,
    ".ipynb": lambda text: f'"{STAMP}": {{'.encode() in text,
    ".csv": lambda text: text.startswith(",".join(COLUMNS).encode()),
    ".pdf": lambda text: text.endswith(PRINTED),
    ".json": lambda text: text == b"[]\n" or text.startswith(b'[\n {\n  "run": '),
}


def encoded(text: str) -> bytes:
    """A text as it is written: what UTF-8 has not, as in a file's name, is escaped."""
    return text.encode("utf-8", "backslashreplace")


def write(folder: Path, texts: Mapping[str, str | bytes]) -> None:
    """Write files whole, all of them or none. Raises OSError, also where a file is not a report's.

    The folder is made again if a notebook has removed it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = {part(folder): folder / name for name in texts}
    try:
        for new, text in zip(parts, texts.values(), strict=True):
            with new.open("xb") as file:
                file.write(encoded(text) if isinstance(text, str) else text)
        for path in parts.values():
            refuse_foreign(path)
        for new, path in parts.items():
            new.replace(path)
    finally:
        for new in parts:
            new.unlink(missing_ok=True)


def refuse_foreign(path: Path) -> None:
    """Raise FileExistsError for a file that no report has written, and for a link."""
    if path.is_symlink():
        raise FileExistsError(EEXIST, f"{path.name} is a link", str(path))
    if path.is_dir() or not path.exists():
        return
    if not path.is_file() or not OURS[path.suffix](path.read_bytes()):
        raise FileExistsError(EEXIST, f"{path.name} was not written by a report", str(path))


def prepare(folder: Path) -> None:
    """Make the folder, check that it can be written, remove the parts of killed reports."""
    import psutil

    folder.mkdir(parents=True, exist_ok=True)
    probe = part(folder)
    probe.touch(exist_ok=False)
    probe.unlink()
    for path in folder.iterdir():
        process = PART.fullmatch(path.name)
        if process and not psutil.pid_exists(int(process[1])):
            path.unlink(missing_ok=True)


def part(folder: Path) -> Path:
    """A name for a file that is being written; `prepare` removes such files of killed reports."""
    return folder / f".nummodel-{os.getpid()}-{token_hex(4)}.part"
