"""Figures: what stands beside a curve can be read."""

from itertools import combinations

import numpy as np

from nummodel import plot


def test_labels_of_curves_that_end_together_do_not_stand_in_each_other():
    picture = plot.Picture("Three curves that end at one height, and one that ends elsewhere.")
    ax = plot.axes(picture, "", "")
    x = np.arange(1.0, 9.0)
    for text, height in {"one": 1.0, "two": 1.01, "three": 0.99, "high": 5.0}.items():
        plot.line(ax, x, height * x, text)
    plot.line(ax, x / 2, x / 2, "left")
    picture.png()
    boxes = {label.get_text(): label.get_window_extent() for label in ax.texts}
    line = ax.texts[0].get_size() / 72 * picture.figure.dpi
    for one, other in combinations(boxes.values(), 2):
        beside = one.x1 < other.x0 or other.x1 < one.x0
        assert beside or abs(one.y0 + one.y1 - other.y0 - other.y1) / 2 >= line
    assert boxes["three"].y0 < boxes["one"].y0 < boxes["two"].y0, "in the order of the curves"
    moved = {label.get_text(): label.get_position()[1] for label in ax.texts}
    assert moved["three"] == moved["high"] == moved["left"] == 0
