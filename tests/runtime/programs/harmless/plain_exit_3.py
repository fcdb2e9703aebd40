"""Leaves the loop by sys.exit(3), with finally and atexit on the way."""

import atexit
import sys

atexit.register(print, "atexit")
kept = []
try:
    for step in range(1000):
        kept.append(bytearray(2000))
        if step == 700:
            sys.exit(3)
finally:
    print("finally", len(kept))
