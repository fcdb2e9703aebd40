"""A track that has ended is dropped."""

import torch

STEPS = 3000


class Smoother:
    def __init__(self):
        self._states = {}

    def update(self, track_id, position):
        before = self._states.get(track_id, position)
        self._states[track_id] = 0.9 * before + 0.1 * position
        return self._states[track_id]

    def end(self, track_id):
        self._states.pop(track_id, None)


def main():
    smoother = Smoother()
    for step in range(STEPS):
        for frame in range(3):
            smoother.update(step, torch.full((1024,), float(frame)))
        smoother.end(step)
    print("done")


if __name__ == "__main__":
    main()
