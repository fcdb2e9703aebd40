"""Reads stdin, writes to both streams without newlines, and replaces them."""

import contextlib
import io
import sys

print(sys.stdin.read(), end="")
kept, caught = [], io.StringIO()
for step in range(600):
    kept.append(bytearray(2000))
    sys.stderr.write("." if step % 100 == 0 else "")
    with contextlib.redirect_stderr(caught), contextlib.redirect_stdout(caught):
        print("x", end="")
sys.stderr.write("\n")
print(len(caught.getvalue()), sys.stderr is sys.__stderr__, sys.stdout.encoding)
sys.stdout.write("no newline at the end")
