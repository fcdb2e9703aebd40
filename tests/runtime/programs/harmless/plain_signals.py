"""Handlers and timers of the program's own."""

import os
import signal
import time

seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
kept = []
for step in range(600):
    kept.append(bytearray(2000))
    if step % 100 == 50:
        os.kill(os.getpid(), signal.SIGUSR1)
os.kill(os.getpid(), signal.SIGTERM)
while "alarm" not in seen:
    time.sleep(0.01)
print(sorted(map(str, seen)), signal.getsignal(signal.SIGALRM).__name__)
