"""Ctrl-C in the loop, which the program handles itself."""

import os
import signal

kept, interrupted = [], 0
for step in range(900):
    try:
        kept.append(bytearray(2000))
        if step % 300 == 200:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
    except KeyboardInterrupt:
        interrupted += 1
print(len(kept), interrupted)
raise SystemExit(interrupted)
