"""`python -m nummodel`."""

from nummodel.cli import main

if __name__ == "__main__":
    main()
