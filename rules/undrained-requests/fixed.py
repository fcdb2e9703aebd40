"""A finished request leaves the table."""

import torch

STEPS = 400


class Scheduler:
    def __init__(self):
        self.requests = {}
        self.running = {}
        self.slots = {}

    def add_request(self, request_id, prompt):
        self.requests[request_id] = {"prompt": prompt, "tokens": []}
        self.running[request_id] = True
        self.slots[request_id] = len(self.slots)

    def step(self):
        for request_id in list(self.running):
            self.requests[request_id]["tokens"].append(0)
            self.finish(request_id)

    def finish(self, request_id):
        del self.running[request_id]
        del self.slots[request_id]
        del self.requests[request_id]


def main():
    scheduler = Scheduler()
    for step in range(STEPS):
        scheduler.add_request(f"request-{step}", torch.ones(2048))
        scheduler.step()
    print(f"requests held: {len(scheduler.requests)}")


if __name__ == "__main__":
    main()
