"""The state of every track is kept, though tracks end and their numbers never return."""

import torch

STEPS = 3000


class Smoother:
    def __init__(self):
        self._states = {}

    def update(self, track_id, position):
        before = self._states.get(track_id, position)
        self._states[track_id] = 0.9 * before + 0.1 * position  # leak: keyed-state-never-dropped
        return self._states[track_id]


def main():
    smoother = Smoother()
    for step in range(STEPS):
        for frame in range(3):
            smoother.update(step, torch.full((1024,), float(frame)))
    print("done")


if __name__ == "__main__":
    main()
