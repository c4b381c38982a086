"""How property tests are run; `make fuzz` takes its examples from the other profile."""

from hypothesis import settings

# No deadline: the first example of a test may be the one that imports SymPy or compiles a formula.
# `make test` tries the same examples each time, so that a change fails by its own fault.
settings.register_profile("test", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("test")
