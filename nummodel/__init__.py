"""Why computers stop getting faster when you add processors: laws, queues, locks, NUMA and I/O.

`models` has the formulas, `fits` estimates their quantities from measurements, `records` has tables
and claims, `answers` says what they mean for a user's system, and `reports` makes pages.
"""

from nummodel._faces import face

__version__ = "0.1.0"
__getattr__, __dir__ = face(
    __name__, "models fits records answers reports formula nomenclature plot sweeps widgets"
)
