"""The stream holds its response weakly."""

import weakref

import torch

STEPS = 400


class Response:
    def __init__(self, body):
        self.body = body
        self.stream = None


class Stream:
    def __init__(self, response):
        self.response = weakref.ref(response)

    def read(self):
        return self.response().body


def open_stream(response):
    response.stream = Stream(response)


def main():
    total = 0
    for step in range(STEPS):
        response = Response(torch.randn(4, 256))
        open_stream(response)
        total += len(response.stream.read())
    print(f"{total} rows")


if __name__ == "__main__":
    main()
