"""`python -m nummodel`."""

from nummodel.cli import main

main()
