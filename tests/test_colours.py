"""Colours: they can be told apart by colour-blind readers, and text in them can be read.

Colour blindness is simulated by the matrices for full severity of G. M. Machado, M. M. Oliveira and
L. A. F. Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, IEEE
Transactions on Visualization and Computer Graphics 15 (2009) 6, 1291-1298, which come with the
paper; they apply to linear RGB. Distances are those of CIELAB (CIE 1976), contrasts those of WCAG
2.1, of which 1.4.3 asks for 4.5 to 1 of text.
"""

import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from nummodel import plot
from nummodel.records import claims
from nummodel.reports import pages

DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
#: Linear sRGB to XYZ (IEC 61966-2-1).
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = "#ffffff"


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour, deficiency):
    """Where somebody sees a colour in CIELAB, white being (100, 0, 0)."""
    seen = np.clip(DEFICIENCIES[deficiency] @ linear(colour), 0, 1)
    x, y, z = XYZ @ seen / XYZ.sum(axis=1)
    fx, fy, fz = (np.cbrt(t) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def contrast(one, other):
    dark, light = sorted(0.05 + XYZ[1] @ linear(colour) for colour in (one, other))
    return light / dark


def test_the_measures_are_those_of_the_definitions():
    assert lab(WHITE, "none") == pytest.approx([100, 0, 0], abs=1e-6)
    assert lab("#ff0000", "none") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert contrast("#000000", WHITE) == pytest.approx(21)
    for matrix in DEFICIENCIES.values():  # nobody takes grey for a colour
        assert matrix.sum(axis=1) == pytest.approx([1, 1, 1], abs=2e-6)
    red, green = "#d00000", "#707000"
    assert np.linalg.norm(lab(red, "none") - lab(green, "none")) > 60
    assert np.linalg.norm(lab(red, "deuteranopia") - lab(green, "deuteranopia")) < 15


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("colours", [plot.COLOURS, [*claims.MARKS.values()]], ids=["plot", "marks"])
def test_colours_used_together_can_be_told_apart(colours, deficiency):
    """A distance of 2.3 is just noticeable; points and thin lines need several times that."""
    seen = {colour: lab(colour, deficiency) for colour in colours}
    near = {
        pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in combinations(colours, 2)
    }
    assert min(near.values()) >= 15, min(near, key=near.get)


@pytest.mark.parametrize("colour", plot.COLOURS)
def test_text_in_a_figure_can_be_read(colour):
    picture = plot.Picture("A word in the colour of a curve.")
    text = plot.axes(picture, "", "").text(0, 0, "word", color=colour)
    for _ in range(2):
        picture.png()
        assert contrast(text.get_color(), WHITE) >= 4.5
        assert contrast(text.get_color(), WHITE) <= max(4.8, contrast(colour, WHITE) + 0.01)


#: What `hue-rotate(180deg)` does to a colour of sRGB (Filter Effects Module Level 1, W3C, 9.4).
ROTATED = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def in_the_dark(colour):
    """What becomes of a colour of a figure on a dark page, by the filter in the page's style."""
    name = r"filter: invert\((\S+)\) hue-rotate\(180deg\) brightness\((\S+)\)"
    amount, brightness = map(float, re.search(name, pages.index([])).groups())
    rgb = np.array(to_rgb(colour))
    return np.clip(ROTATED @ (amount + rgb * (1 - 2 * amount)) * brightness, 0, 1)


@pytest.mark.parametrize("colour", plot.COLOURS)
def test_figures_can_be_read_on_a_dark_page(colour):
    """Lines and points with a contrast of 3 (WCAG 2.1, 1.4.11), text with one of 4.5."""
    paper = in_the_dark(WHITE)
    assert np.rint(255 * paper) == pytest.approx(0x14), "as the page"
    assert contrast(in_the_dark(colour), paper) >= 3
    assert contrast(in_the_dark(plot.legible(colour)), paper) >= 4.5


def test_text_on_a_page_can_be_read():
    """Each colour of text on every background that a page has, and code on its own; light, dark."""
    light, dark = pages.index([]).split("@media screen and (prefers-color-scheme: dark)")
    dark = dark.partition("* { box-sizing")[0]
    for css, paper in ((light, WHITE), (dark, "#141414")):
        named = dict(re.findall(r"--(\w+): (#\w+)", css))
        backgrounds = {named.pop(name) for name in ("paper", "wash", "note", "warn", "spot")}
        assert set(named) == {"ink", "soft", "line", "good", "bad", "link"} and paper in backgrounds
        for text in ("ink", "soft", "good", "bad", "link"):
            for background in backgrounds:
                assert contrast(named[text], background) >= 4.5, (text, background)
        wash = re.search(r"--wash: (#\w+)", css)[1]
        code = re.findall(r"\.highlight \.(\w+) \{[^}]*(?<!-)color: (#\w+)", css)
        pale = {kind for kind, colour in code if contrast(colour, wash) < 4.5}
        assert len(code) > 40 and pale == {"w"}, "white space is seen by nobody"
