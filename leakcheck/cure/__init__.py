"""From a leak to a proved edit: candidates are made, tried on the run, compared and chosen.

Everything here is a pure function of values; `leakcheck.cli.fix` starts the runs and prints.
"""
