"""The one reader of the source: what does a program do with the place that holds what grows?

Below both halves, with the standard `ast` alone: the watched process imports no LibCST. It says
values, never verdicts: `leakcheck.runtime.outlook` decides.
"""
