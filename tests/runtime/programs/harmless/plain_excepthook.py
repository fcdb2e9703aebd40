"""A hook for uncaught errors that fails itself, and the names that every script has."""

import sys


def failing_hook(kind, error, trace):
    raise RuntimeError("the hook fails too")


def loop(count):
    kept = [bytearray(2000) for _ in range(count)]
    raise LookupError(f"kept {len(kept)}")


print(__cached__, __annotations__, __package__, __doc__, type(__loader__).__name__)
sys.excepthook = failing_hook
loop(600)
