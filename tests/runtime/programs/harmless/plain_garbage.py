"""The collector is the program's: switched off, frozen, with thresholds and callbacks."""

import gc

gc.disable()
gc.set_threshold(900, 20, 30)
gc.set_debug(0)
phases = []
gc.callbacks.append(lambda phase, info: phases.append(phase))


class Cell:
    def __init__(self):
        self.me = self


kept = []
for _ in range(600):
    kept.append(bytearray(2000))
    Cell()
print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.get_freeze_count())
gc.freeze()
frozen = gc.get_freeze_count()
for _ in range(600):
    kept.append(bytearray(2000))
print(frozen > 0, gc.get_freeze_count() > 0, gc.isenabled(), len(gc.garbage))
gc.unfreeze()
print(len(gc.callbacks) > 0, set(phases) <= {"start", "stop"})
