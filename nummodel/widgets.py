"""Sliders over any law, station, network or lock, beside what was measured.

A model is any function of named quantities. Nothing here is written for a single model.
"""

from collections.abc import Callable, Mapping
from html import escape
from inspect import Parameter, signature
from math import ceil
from typing import Any

import ipywidgets
import numpy as np

from nummodel import plot
from nummodel.arguments import WHOLE
from nummodel.fits import Fit
from nummodel.models import scaling
from nummodel.nomenclature import QUANTITIES, known, label, quantity, show

#: Where a slider starts unless it is given; others start at one.
START = {"N": 64, "sigma": 0.05, "kappa": 1e-3, "rho": 0.5}


def explore(
    model: Fit | Callable,
    data: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    **ranges: Any,
):
    """The model over its first argument, with a slider for each of the others.

    `model` is a formula, a fit, a station, or any function whose arguments are named after
    quantities (`D_lock` is a D). It takes an array as its first argument and gives one, or several
    by name (as `networks.solve` does), from which one is chosen. `data` has columns for the first
    argument and for results: they are drawn as points, with residuals. A fit brings its own, and
    its band. `labels` say what some arguments are, in place of the nomenclature.

    `ranges` gives each argument (low, high), (low, high, start) or a start; for the first argument,
    the ends of the axis or its upper end. Raises ValueError for a name that is no argument of the
    model, or no quantity.
    """
    return Explorer(model, data, labels or {}, ranges)


def interact(draw: Callable[..., plot.Picture], **sliders: Any) -> ipywidgets.VBox:
    """Sliders above the picture that `draw` makes of their values, again whenever one moves."""
    shown = _following(lambda **values: [draw(**values)._repr_mimebundle_()], sliders)
    return ipywidgets.VBox([*sliders.values(), shown])


class Explorer(ipywidgets.VBox):
    """What `explore` shows: `sliders` by argument, `choice` of the result, picture and readout."""

    def __init__(
        self,
        model: Any,
        data: Mapping[str, Any] | None,
        labels: Mapping[str, str],
        ranges: dict[str, Any],
    ):
        self.fit = model if isinstance(model, Fit) else None
        self.model = self.fit.law if self.fit else model
        arguments = signature(self.model).parameters
        for name in (*arguments, *ranges):
            if name not in arguments or not known(name):
                expected = ", ".join(arguments if name in ranges else QUANTITIES)
                raise ValueError(f"explore: {name} is unknown, expected one of {expected}")
        self.load, *rest = arguments
        self.data = dict(data or {})
        if self.fit:
            self.data = {self.load: self.fit.N, self.fit.law.result: self.fit.X}
        self.axis = _axis(self.load, ranges.get(self.load), self.data.get(self.load))
        fitted = self.fit.values if self.fit else {}
        self.sliders = {
            name: _slider(name, ranges.get(name), fitted.get(name, arguments[name].default))
            for name in rest
        }
        for name, text in labels.items():
            self.sliders[name].description = text
        self._band = self.fit.predict(self.axis) if self.fit else None
        self.starts = {name: slider.value for name, slider in self.sliders.items()}
        results = list(self.at(self.axis, **self.starts))
        self.choice = ipywidgets.Dropdown(options=results, description="result")
        again = ipywidgets.Button(description="reset", tooltip="all sliders back to their start")
        again.on_click(lambda _: self.reset())
        controls = self.sliders | {"choice": self.choice}
        _align(list(controls.values()))
        shown = _following(self._draw, controls)
        chosen = [self.choice] if len(results) > 1 else []
        super().__init__([*self.sliders.values(), ipywidgets.HBox([*chosen, again]), shown])

    def reset(self) -> None:
        """All sliders back to where they started."""
        for name, slider in self.sliders.items():
            slider.value = self.starts[name]

    def at(self, load: np.ndarray, **values: float) -> dict[str, np.ndarray]:
        """Results by name, along an array of the first argument."""
        value = self.model(load, **values)
        name = getattr(self.model, "result", getattr(self.model, "__name__", "value"))
        fields = value._asdict() if hasattr(value, "_asdict") else getattr(value, "__dict__", {})
        results = {n: v for n, v in (fields or {name: value}).items() if np.shape(v) == load.shape}
        if not results:
            raise ValueError(f"explore: {name} gives nothing along {self.load}, expected an array")
        return {n: np.asarray(v, dtype=float) for n, v in results.items()}

    def readout(self, choice: str, **values: float) -> str:
        """The end of the axis and the highest point on it; peak and ceiling of a scaling law."""
        y = self.at(self.axis, **values)[choice]
        top = int(np.argmax(np.where(np.isnan(y), -np.inf, y)))
        lines = [
            f"{choice} = {show(y[-1])} at {self.load} = {show(self.axis[-1])}",
            f"highest {choice} = {show(y[top])} at {self.load} = {show(self.axis[top])}",
        ]
        if self.model in scaling.LAWS.values():
            if peak := scaling.optimum(self.model):
                lines.append(f"peak at N = {show(peak.at(values))}")
            if ceiling := scaling.ceiling(self.model):
                lines.append(f"ceiling = {show(ceiling.at(values))}")
        return "\n".join(lines)

    def _draw(self, choice: str, **values: float) -> list[tuple[dict, dict]]:
        try:
            y = self.at(self.axis, **values)[choice]
            text = self.readout(choice, **values)
        except (ValueError, ArithmeticError) as wrong:
            return [({"text/html": f"<p>{escape(str(wrong))}</p>"}, {})]
        given = ", ".join(f"{name} = {value:.4g}" for name, value in values.items())
        measured = choice in self.data
        picture = plot.Picture(f"{choice} over {self.load}, with {given}.", height=3.8 + measured)
        grid = picture.figure.add_gridspec(1 + measured, 1, height_ratios=(3, 1)[: 1 + measured])
        above, *below = (plot.axes(picture, "", "", grid[i]) for i in range(1 + measured))
        above.set_ylabel(label(choice) if choice in QUANTITIES else choice)
        plot.line(above, self.axis, np.where(np.isfinite(y), y, np.nan))
        for ax in below:
            self._off(above, ax, choice, values)
        above.set_ylim(0)
        picture.figure.axes[-1].set_xlabel(label(known(self.load)))
        readout = f'<p style="white-space: pre-line">{escape(text)}</p>'
        return [({"text/html": readout}, {}), picture._repr_mimebundle_()]

    def _off(self, above, below, choice: str, values: dict[str, float]) -> None:
        """The measurements beside the curve, their residuals below, and the band of a fit."""
        load, measured = (np.asarray(self.data[n], dtype=float) for n in (self.load, choice))
        model = self.at(load, **values)[choice]
        plot.points(above, load, measured)
        plot.points(below, load, 100 * (measured / model - 1))
        below.axhline(0, color=plot.BLUE, linewidth=1.2)
        below.set_ylabel("off by [%]")
        below.set_xlim(above.get_xlim())
        if self._band is not None:
            plot.band(above, self.axis, self._band["low"], self._band["high"])


def _following(bundles: Callable[..., list], controls: Mapping[str, Any]) -> ipywidgets.Output:
    """An output that shows displays, each with its metadata. They are made from the values of
    `controls`, and are made again whenever one of these values changes.

    The displays are written into the output. `ipywidgets.interact` would capture them instead, and
    nbclient would send what was captured back to the kernel, on the channel that brings the end of
    a cell. nbclient then misses that end (nbclient #312).
    """
    shown = ipywidgets.Output()

    def follow(_: Any = None) -> None:
        displays = bundles(**{name: control.value for name, control in controls.items()})
        shown.outputs = tuple(
            {"output_type": "display_data", "data": data, "metadata": metadata}
            for data, metadata in displays
        )

    for control in controls.values():
        control.observe(follow, "value")
    follow()
    return shown


def _align(controls: list) -> None:
    """Labels in one column, as wide as the longest label."""
    wide = 0.65 * max(len(control.description) for control in controls)
    for control in controls:
        control.style.description_width = f"{wide:.0f}em"
        control.layout = {"width": f"{wide + 22:.0f}em", "max_width": "100%"}


def _axis(name: str, span: Any, measured: Any) -> np.ndarray:
    """The loads to compute: over the given range, or to a little beyond the measurements."""
    low, high = quantity(known(name))[3:]
    far = 1.2 * np.max(measured) if measured is not None else START.get(name, 1.0)
    low, high = span[:2] if np.ndim(span) else (low, span or min(far, high))
    whole = known(name) in WHOLE
    axis = np.linspace(max(low, 1.0) if whole else low, high, 200)
    return np.unique(np.rint(axis)) if whole else axis[axis > 0]


def _slider(name: str, span: Any, start: Any) -> ipywidgets.FloatSlider | ipywidgets.IntSlider:
    """A slider with the meaning, the symbol and the unit of its quantity."""
    what = quantity(known(name))
    if start is Parameter.empty:
        start = START.get(known(name), np.clip(1.0, what.low, what.high))
    if np.ndim(span):
        low, high, *first = span
        start = first[0] if first else start if low <= start <= high else (low + high) / 2
    else:
        start = start if span is None else span
        low, high = what.low, what.high if np.isfinite(what.high) else 4 * (start or 1.0)
    if not low <= start <= high:
        raise ValueError(f"explore: {name} starts at {start:g}, expected {low:g} to {high:g}")
    text = label(name) if name in QUANTITIES else f"{name}: {what.meaning}"
    if known(name) in WHOLE:
        ends = {"min": ceil(low), "max": int(high)}
        return ipywidgets.IntSlider(round(start), **ends, description=text)
    ends = {"min": low, "max": high, "step": (high - low) / 200}
    return ipywidgets.FloatSlider(start, **ends, readout_format=".3g", description=text)
