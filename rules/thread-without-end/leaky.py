"""The thread of each writer goes on after close()."""

import queue
import threading

STEPS = 10


class Writer:
    def __init__(self):
        self.events = queue.Queue()
        self.last = None
        thread = threading.Thread(target=self.run, daemon=True)  # leak: thread-without-end
        thread.start()

    def run(self):
        while True:
            self.last = self.events.get()

    def close(self):
        self.events.put(None)


def main():
    for step in range(STEPS):
        writer = Writer()
        writer.events.put(step)
        writer.close()
    print("done")


if __name__ == "__main__":
    main()
