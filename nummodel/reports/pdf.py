"""Pages as PDF, printed by the browser that is there. No request leaves the machine."""

import os
import subprocess
from errno import EIO
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from nummodel.errors import InputError
from nummodel.reports import files

BROWSERS = (
    "chromium chromium-browser google-chrome google-chrome-stable chrome microsoft-edge msedge"
).split()
#: Where Windows and macOS have them, which are not on the path there.
PLACES = (
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
OPTIONS = """--headless --disable-gpu --no-first-run --no-pdf-header-footer
    --generate-pdf-document-outline --disable-background-networking --disable-component-update
    --disable-sync --disable-quic""".split()
#: No name has an address: neither a page nor the browser itself can ask for anything.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
TIMEOUT = 120.0  # seconds that a page may take


def browser() -> str:
    """The browser that prints. Raises InputError if there is none."""
    found = next(filter(None, map(which, (*BROWSERS, *PLACES))), None)
    if not found:
        expected = "expected Chromium, Chrome or Edge on the PATH (Debian: apt install chromium)"
        raise InputError(f"--pdf: no browser found, {expected}")
    return found


def write(page: Path, browser: str) -> Path:
    """Print a page to a PDF beside it, unless that is up to date. Raises OSError if it fails."""
    target = page.with_suffix(".pdf")
    files.refuse_foreign(target)
    if target.exists() and target.stat().st_mtime_ns >= page.stat().st_mtime_ns:
        return target
    # A browser has no sandbox where everybody is root, as in many containers.
    root = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        # Beside the page, since browsers in a package of their own see no other folder.
        part = files.part(target.parent.absolute())
        command = [browser, *OPTIONS, OFFLINE, *root, f"--user-data-dir={home}"]
        command += [f"--print-to-pdf={part}", page.absolute().as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=True)
            printed = part.read_bytes()
        except (subprocess.SubprocessError, FileNotFoundError):
            message = f"{Path(browser).name} has failed, or has printed nothing in {TIMEOUT:g} s"
            raise OSError(EIO, message, str(target)) from None
        finally:
            part.unlink(missing_ok=True)
    files.write(target.parent, {target.name: printed + files.PRINTED})
    return target
