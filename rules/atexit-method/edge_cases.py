import atexit

import torch


class Ended:
    def __init__(self):
        self.buffer = torch.zeros(8)
        atexit.register(self.stop_workers)  # leak: atexit-method

    def stop_workers(self):
        self.buffer = None


class Finalized:
    def __init__(self):
        self.buffer = torch.zeros(8)
        atexit.register(self.__del__)  # leak: atexit-method

    def __del__(self):
        self.buffer = None


class Registry:
    def __init__(self):
        self.buffer = torch.zeros(8)
        atexit.register(print, "done")
