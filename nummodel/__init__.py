"""Why computers stop getting faster when you add processors: laws, queues, locks, NUMA and I/O."""

__version__ = "0.1.0"
