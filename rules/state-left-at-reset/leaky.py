"""reset() empties the rewards of an episode, and forgets its frames."""

import torch

STEPS = 1500
EPISODE = 10


class Recorder:
    def __init__(self):
        self.rewards = []
        self.frames = []

    def record(self, frame, reward):
        self.rewards.append(reward)
        self.frames.append(frame)  # leak: state-left-at-reset

    def newest(self):
        return self.frames[-1]

    def reset(self):
        self.rewards = []


def main():
    recorder = Recorder()
    for step in range(STEPS):
        recorder.record(torch.rand(2048), float(step))
        if step % EPISODE == EPISODE - 1:
            print(f"{recorder.newest().mean():.3f}", end="\r")
            recorder.reset()


if __name__ == "__main__":
    main()
