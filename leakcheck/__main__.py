"""`python -m leakcheck` is the command `leakcheck`."""

from leakcheck.cli import main

if __name__ == "__main__":
    main()
