"""From notebooks to pages: which runs there are, their execution, and what is shown of them."""

from nummodel._faces import face

__getattr__, __dir__ = face(__name__, "notebook pages report results runs")
