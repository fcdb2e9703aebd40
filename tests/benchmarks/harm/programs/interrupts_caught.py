"""Ctrl-C, caught again and again in a loop that makes cycles; torch loses one now and then."""

import os
import signal
import sys
import threading
import time

times = int(sys.argv[1]) if len(sys.argv) > 1 else 300

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & has it ignored
inside, caught = False, 0  # no Event: one that is interrupted may keep its lock


def interrupt():
    global inside
    for number in range(times):
        while not inside:
            time.sleep(0.0005)
        inside = False
        time.sleep(0.001 + number % 7 / 5000)
        os.kill(os.getpid(), signal.SIGINT)


sender = threading.Thread(target=interrupt)
sender.start()
for _ in range(times):
    try:
        inside = True
        while True:
            linked = [{} for _ in range(20)]
            linked.append(linked)
    except KeyboardInterrupt:
        caught += 1
sender.join()
print("caught", caught)
