"""Ctrl-C, caught again and again in a loop that makes cycles; torch loses one now and then."""

import os
import signal
import threading
import time

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & has it ignored
inside, caught = False, 0  # no Event: one that is interrupted may keep its lock


def interrupt():
    global inside
    for number in range(300):
        while not inside:
            time.sleep(0.0005)
        inside = False
        time.sleep(0.001 + number % 7 / 5000)
        os.kill(os.getpid(), signal.SIGINT)


sender = threading.Thread(target=interrupt)
sender.start()
for _ in range(300):
    try:
        inside = True
        while True:
            linked = [{} for _ in range(20)]
            linked.append(linked)
    except KeyboardInterrupt:
        caught += 1
sender.join()
print("caught", caught)
