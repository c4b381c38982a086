"""Why throughput stops growing, in formulas: laws of scaling, queues, locks, memory and I/O.

An argument that makes no sense raises a ValueError that names it and says what was expected.
"""

from nummodel._faces import face

__getattr__, __dir__ = face(
    __name__,
    "contention locks networks nodes numa operational partition queueing scaling storage systems",
)
