"""Threads with their own loops and locals, and a thread that outlives the main one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

own = threading.local()


def work(number):
    own.kept = []
    for step in range(400):
        own.kept.append(step * number)
    return sum(own.kept)


def late():
    time.sleep(0.2)
    print("late")


kept = []
with ThreadPoolExecutor(3) as pool:
    for step in range(600):
        kept.append(bytearray(2000))
        if step % 150 == 0:
            print(step, list(pool.map(work, range(4))))
threading.Thread(target=late).start()
print("main is over", threading.active_count())
