"""Twelve screenshots of report/ and of a page about a file on one sheet; run by `make sheet`.

What no test can judge, somebody has to look at: sizes, light and dark, code, tables, print.
"""

import subprocess
from base64 import b64encode
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from conftest import BIN, OPTIONS, OWN, OWN_PAGE
from playwright.sync_api import sync_playwright

REPORT, SHEET = Path("report"), Path("report/sheet.png")
HEIGHTS = {360: 780, 768: 1000, 1366: 900}
#: A page, where on it, its width, and "light", "dark" or "print".
SHOTS = (
    ("index", "", 360, "light"),
    ("index", "", 768, "dark"),
    ("index", "", 1366, "light"),
    (OWN_PAGE, "", 360, "dark"),
    (OWN_PAGE, "The-fit", 768, "light"),
    (OWN_PAGE, "", 1366, "dark"),
    ("11-zvm-processor-scaling", "The-measurements", 360, "light"),
    ("24-which-lock", "The-measurements", 768, "dark"),
    ("11-zvm-processor-scaling", "", 1366, "light"),
    ("05-numa-latency", "code", 360, "dark"),
    ("12-alphaserver-numa", "", 768, "print"),
    ("22-what-limits", "What-would-a-change-bring?", 1366, "light"),
)


def shoot(browser, folder: Path, name: str, where: str, width: int, kind: str) -> bytes:
    """One screenshot, of the part that begins at the anchor `where`; "code": all code unfolded."""
    scheme = "dark" if kind == "dark" else "light"
    page = browser.new_page(
        viewport={"width": width, "height": HEIGHTS[width]},
        color_scheme=scheme,
        device_scale_factor=2 if width < 500 else 1,
    )
    if kind == "print":
        page.emulate_media(media="print")
    anchor = f"#{where}" if where and where != "code" else ""
    page.goto((folder / f"{name}.html").absolute().as_uri() + anchor)
    if where == "code":
        page.locator(".switch input").check()
        page.evaluate("document.querySelectorAll('details.code')[4].scrollIntoView()")
    page.wait_for_timeout(200)
    image = page.screenshot()
    page.close()
    return image


def sheet(images: list[bytes]) -> str:
    """The screenshots in rows of the same height, each with its size and kind."""
    figures = [
        f'<figure><img src="data:image/png;base64,{b64encode(image).decode()}">'
        f"<figcaption>{escape(name)} {width} px, {kind}</figcaption></figure>"
        for image, (name, _, width, kind) in zip(images, SHOTS, strict=True)
    ]
    style = "body { margin: 12px; background: #888; font: 13px sans-serif } img { height: 640px }"
    style += "main { display: flex; flex-wrap: wrap; gap: 12px } figure { margin: 0 }"
    return f"<style>{style}</style><main>{''.join(figures)}</main>"


if __name__ == "__main__":
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        (Path(home) / "own.csv").write_text(OWN)
        command = [BIN.absolute() / "nummodel", "report", "21", "-p", "file=own.csv", "-p", "at=48"]
        subprocess.run([*command, "--output", "."], cwd=home, check=True)
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=OPTIONS.split()
        )
        shots = [
            shoot(browser, Path(home) if shot[0] == OWN_PAGE else REPORT, *shot) for shot in SHOTS
        ]
        page = browser.new_page(viewport={"width": 1900, "height": 1000})
        page.set_content(sheet(shots))
        page.wait_for_timeout(500)
        page.screenshot(path=SHEET, full_page=True)
    print(SHEET)
