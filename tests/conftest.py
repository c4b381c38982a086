"""Settings of all tests: no result depends on how long something takes."""

from hypothesis import settings

# The first example of a test may import SymPy or compile a formula, so no example has a deadline.
# Each run of `make test` tries the same examples; `make slow` tries others, and more of them.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("other", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")
