"""A handler raises, often while the garbage collector runs: each alarm is caught where it rings."""

import random
import signal


class Alarm(Exception):
    pass


class Linked:
    def __init__(self):
        self.me = self


def ring(number, frame):
    raise Alarm


signal.signal(signal.SIGALRM, ring)
random.seed(0)
caught = 0
for _ in range(1500):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 1e-3))
        while True:
            kept = [Linked() for _ in range(20)]
    except Alarm:
        caught += 1
print("caught", caught)
