"""Answers: what is said of a user's table, in sentences, tables and figures."""

from nummodel._faces import face

__getattr__, __dir__ = face(
    __name__,
    "agreement ahead bottleneck change full limits options remarks responses study tables which_lock",
)
