"""Reports: notebooks are planned as runs, executed, and shown as pages."""

from nummodel._faces import face

__getattr__, __dir__ = face(__name__, "notebook pages report results runs")
