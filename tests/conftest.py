"""How tests are run: numerical libraries with one thread, and property tests with these examples.

`make fuzz` takes its examples from the other profile.
"""

import os

from hypothesis import settings

# The processes of the tests keep all processors busy. More threads in each would only wait for
# each other: some comparisons of small tables took four times as much processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it when it is imported

# No deadline: the first example of a test may be the one that imports SymPy or compiles a formula.
# `make test` tries the same examples each time, so that a change fails by its own fault.
settings.register_profile("test", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("test")
