"""Why throughput stops growing, in formulas: laws of scaling, queues, locks, memory and I/O."""

from nummodel._faces import face

__getattr__, __dir__ = face(
    __name__, "locks networks nodes numa operational partition queueing scaling storage"
)
