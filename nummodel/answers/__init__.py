"""Answers: what is said of a user's table, in sentences, tables and figures."""

from nummodel._faces import face

ROOMS = "agreement ahead bottleneck change full limits options remarks responses study tables"
__getattr__, __dir__ = face(__name__, f"{ROOMS} which_lock")
