"""Figures: data are points, models are lines with their band, residuals below.

Every figure is a `Picture`, which shows itself in a notebook with its alternative text and needs
neither pyplot nor a backend. Colours are those of Okabe and Ito, which colour-blind readers can
tell apart; text stands next to a curve instead of in a legend, in a darker shade of its colour
where that would be too pale to read.
"""

from base64 import b64encode
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK = COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#222222",
)  # fmt: skip

#: What marks a label at the end of a curve, and how far apart two of them are, in points.
END, LINE = "end", 11.0
#: A figure is shown so many times larger than it is drawn, with all that is in it: a telephone
#: shows it at half that size, where its text must still be legible.
LARGER = 1.16
#: Points of a line, from which on an SVG has them as a picture.
MANY = 2000


class Picture:
    """A figure with alternative text, which shows itself as the value of a cell.

    It holds a Matplotlib figure and is none itself, so that other libraries in the kernel, which
    may change how Matplotlib's figures are shown, do not change how this picture is shown.
    """

    def __init__(self, alt: str, width: float = 5.8, height: float = 3.6):
        self.alt = alt
        roomy = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)  # inches around text
        self.figure = Figure(figsize=(width / LARGER, height / LARGER), layout=roomy)

    def png(self) -> bytes:
        """The figure as a PNG of twice its size on the screen."""
        return self.image("png")

    def image(self, kind: str) -> bytes:
        """The figure as a file of a kind, "png" or "svg": the same whenever it is drawn."""
        for text in self.figure.findobj(Text):
            text.set_color(legible(text.get_color()))
        for ax in self.figure.axes:
            _spread(ax)
        buffer = BytesIO()
        for line in self.figure.findobj(Line2D):
            line.set_rasterized(np.size(line.get_xdata()) > MANY)  # else an SVG is a megabyte
        with rc_context({"svg.hashsalt": "nummodel"}):
            undated = {"Date": None} if kind == "svg" else None
            self.figure.savefig(buffer, format=kind, dpi=192 * LARGER, metadata=undated)
        return buffer.getvalue()

    def html(self) -> str:
        """The figure as an element of a page."""
        source = f"data:image/svg+xml;base64,{b64encode(self.image('svg')).decode()}"
        return f'<img src="{source}" alt="{escape(self.alt)}" width="{self._width}">'

    @property
    def _width(self) -> int:
        return round(self.figure.get_figwidth() * LARGER * 96)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        # Pages show the SVG; JupyterLab shows it only in notebooks that it trusts.
        svg, layout = self.image("svg").decode(), self.figure.get_layout_engine()
        self.figure.set_layout_engine(None)  # the PNG has that of the SVG, which takes its time
        png = b64encode(self.png()).decode()
        self.figure.set_layout_engine(layout)
        data = {"image/svg+xml": svg, "image/png": png, "text/plain": self.alt}
        told = {"alt": self.alt, "width": self._width}
        return data, {"image/svg+xml": told, "image/png": told}


def axes(picture: Picture, x: str, y: str, position: Any = 111, **options: Any) -> Axes:
    """Axes labelled `x` and `y`, without the frame's upper and right edge."""
    ax = picture.figure.add_subplot(position, xlabel=x, ylabel=y, **options)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def legible(colour: str | tuple) -> tuple[float, float, float]:
    """A colour as dark as text on white has to be: contrast 4.5 to 1 (WCAG 2.1, 1.4.3).

    >>> legible(BLUE) == to_rgb(BLUE), legible(ORANGE) < to_rgb(ORANGE)
    (True, True)
    """
    shade = np.array(to_rgb(colour))
    while 1.05 / (luminance(shade) + 0.05) < 4.5:
        shade *= 0.98
    return tuple(shade.tolist())


def luminance(rgb: np.ndarray) -> float:
    """Relative luminance of a colour of sRGB, as WCAG 2.1 defines it: 0 for black, 1 for white."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def plain(text: str) -> str:
    """Text for a label that Matplotlib must not read as a formula, such as the name of a column."""
    return text.replace("$", r"\$")


def points(ax: Axes, x, y, text: str = "", colour: str = BLACK, hollow: bool = False) -> None:
    """Measurements; hollow ones were not used in the fit. `text` stands at the last."""
    fill = "white" if hollow else colour
    ax.plot(x, y, "o", color=colour, markersize=5.5, markerfacecolor=fill)
    _beside(ax, x, y, text, colour)


def line(ax: Axes, x, y, text: str = "", colour: str = BLUE, style: str = "-") -> None:
    """A model's curve, with `text` at its end."""
    ax.plot(x, y, style, color=colour, linewidth=1.8)
    _beside(ax, x, y, text, colour)


def band(ax: Axes, x, low, high, colour: str = BLUE) -> None:
    """An interval around a curve."""
    ax.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


def forecast(ax: Axes, ahead: Any, asked: Any) -> None:
    """What is expected beyond the measurements: loads N, the middle, the ends of its interval; and
    the same at single loads, which are marked. Nothing without `ahead`.
    """
    if ahead is None:
        return
    N, X, low, high = ahead
    band(ax, N, low, high, ORANGE)
    line(ax, N, X, "forecast", ORANGE)
    if len(asked):
        N, X, low, high = asked
        ax.vlines(N, low, high, color=ORANGE, linewidth=1.8)
        ax.plot(N, X, "D", color=ORANGE, markersize=6)


def fitted(
    result: Any,
    x: str,
    y: str,
    alt: str,
    level: float = 0.95,
    held_out=None,
    ahead=None,
    asked=(),
    law: str | None = None,
) -> Picture:
    """A fit: points, curve, band for new measurements; below, points over the curve, in percent.

    `x` and `y` are axis labels; `held_out` is a pair (N, X) of points that were not used; `ahead`
    and `asked` are as in `forecast`. Where there is a forecast, the curve of the `law` has no band
    beyond the last load, and is dashed there. The axis of loads is logarithmic, if it would else
    leave the points a tenth of its length.
    """
    picture = Picture(alt, height=4.8)
    grid = picture.figure.add_gridspec(2, 1, height_ratios=(3, 1))
    top = axes(picture, "", y, grid[0])
    top.tick_params(labelbottom=False)
    below = axes(picture, x, "over law [%]", grid[1], sharex=top)
    new = ([], []) if held_out is None else held_out
    last, far = max(result.N), max([*result.N, *new[0], *([] if ahead is None else ahead[0])])
    first = min(1.0, *result.N)
    N = np.linspace(first, far * 1.05 if ahead is None else last, 200)
    curve = result.predict(N, level)
    band(top, N, curve["low"], curve["high"])
    line(top, N, curve["value"])
    if ahead is not None:
        beyond = np.geomspace(last, far, 100)
        line(top, beyond, result.at(beyond), plain(f"{law or 'the law'}, if it holds"), style="--")
    forecast(top, ahead, asked)
    for (n, measured), hollow in (((result.N, result.X), False), (new, True)):
        n, measured = np.asarray(n), np.asarray(measured)
        text = "" if not len(new[0]) else "not used" if hollow else "used"
        points(top, n, measured, text, hollow=hollow)
        points(below, n, 100 * (measured / result.at(n) - 1), hollow=hollow)
    below.axhline(0, color=BLUE, linewidth=1.2)
    below.margins(y=0.25)
    top.set_ylim(0)
    if far > 10 * last:
        top.set_xscale("log")
    else:
        top.set_xlim(0)
    return picture


def _beside(ax: Axes, x, y, text: str, colour: str) -> None:
    if text and len(x):
        look: dict[str, Any] = {"color": colour, "va": "center", "gid": END}
        last = (np.asarray(x)[-1], np.asarray(y)[-1])
        ax.annotate(text, last, (6, 0), textcoords="offset points", **look)


def _spread(ax: Axes) -> None:
    """Move labels at the ends of curves up, where they would cover each other."""
    ends = [text for text in ax.texts if isinstance(text, Annotation) and text.get_gid() == END]
    ax.get_ylim()  # which settles the limits
    at = {text: ax.transData.transform(text.xy) * 72 / ax.figure.dpi for text in ends}
    placed: list[tuple[float, float, float]] = []
    for text in sorted(ends, key=lambda text: at[text][1]):
        x, y = at[text]
        end = x + LINE * max(4, len(text.get_text()) / 2)  # a letter is half as wide as high
        taken = [height + LINE for left, right, height in placed if left < end and x < right]
        placed.append((x, end, max([y, *taken])))
        text.set_position((6, placed[-1][2] - y))
