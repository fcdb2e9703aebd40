import torch


def written(path, rows):
    file = open(path, "w")
    file.writelines(rows)
    file.close  # leak: release-not-called


def written_and_closed(path, rows):
    file = open(path, "w")
    file.writelines(rows)
    file.close()


def handed_on(pool, register):
    register(pool.close)
    ending = pool.terminate
    return ending


class Viewer:
    def __init__(self, window, tensor):
        self.window = window
        self.kept = torch.zeros_like(tensor)

    def render(self):
        self.window.image

    def close(self):
        if self.window is not None:
            self.window  # leak: release-not-called


class Closing:
    def __init__(self, window):
        self.window = window

    def close(self):
        self.window.close()


class Serving:
    async def shutdown(self):
        self.task.cancel()
        await self.task  # to await is to use
