"""Near misses are unmarked."""

import threading
from threading import Thread


class Loops(Thread):
    def run(self):
        while True:
            for step in range(3):
                if step:
                    break


class Ends(Thread):
    def run(self):
        while True:
            if self.stopped:
                return


class Owner:
    def start(self):
        self.worker = Loops()  # leak: thread-without-end
        self.worker.start()
        self.other = Ends()
        self.other.start()

        def nested():
            while True:
                self.poll()

        Thread(target=nested).start()  # leak: thread-without-end
        Thread(target=self.breaks).start()
        Thread(target=self.asks).start()

    def breaks(self):
        while True:
            if self.poll():
                break

    def asks(self):
        while not self.stopped:
            self.poll()

    def poll(self):
        return 1


def forever():
    while True:
        pass


threading.Thread(target=forever, daemon=True).start()
