"""Forked, spawned and started children: their output and their exit statuses."""

import multiprocessing
import os
import subprocess
import sys
import time


def child(number):
    total = 0
    for step in range(300):
        total += step * number
    sys.exit(total % 7)


if __name__ == "__main__":
    kept, statuses = [], []
    for step in range(600):
        kept.append(bytearray(2000))
        if step % 200 == 100:
            pid = os.fork()
            if pid == 0:
                for _ in range(100):
                    pass
                os._exit(step % 11)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            done = subprocess.run([sys.executable, "-c", "import sys; sys.exit(5)"])
            statuses.append(done.returncode)
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=child, args=(3,))
        process.start()
        process.join()
        statuses.append(process.exitcode)
    sleeper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    sleeper.start()
    sleeper.terminate()
    sleeper.join()
    print(statuses, sleeper.exitcode)
