"""Leaves by os._exit(4): no finally, no atexit, nothing flushed."""

import atexit
import os

atexit.register(print, "never")
kept = []
for _ in range(600):
    kept.append(bytearray(2000))
print(len(kept), flush=True)
os._exit(4)
