"""The thread ends with the last event."""

import queue
import threading

STEPS = 10


class Writer:
    def __init__(self):
        self.events = queue.Queue()
        self.last = None
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()

    def run(self):
        while (event := self.events.get()) is not None:
            self.last = event

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
