"""Near misses are unmarked."""

import json

import torch


class Trainer:
    def step(self, batch):
        try:
            return self.attempt(batch)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return self.attempt(batch[:1])  # leak: retry-in-except

    def flagged(self, batch):
        failed = False
        try:
            return self.attempt(batch)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            failed = True
        return self.attempt(batch[:1]) if failed else None

    def looped(self, batch):
        while True:
            try:
                return self.attempt(batch)
            except torch.cuda.OutOfMemoryError:
                batch = batch[: len(batch) // 2]

    def other_error(self, batch):
        try:
            return self.attempt(batch)
        except KeyError:
            return self.attempt(batch[:1])

    def allocate(self, size):
        try:
            return torch.empty(size)
        except torch.OutOfMemoryError:
            return torch.empty(size // 2)  # no frame of Python holds the failed attempt

    def on_the_host(self, batch):
        try:
            return self.attempt(batch)
        except torch.OutOfMemoryError:
            batch = batch.to("cpu")
            return self.attempt(batch)  # the host's memory is another

    def told_where(self, batch):
        try:
            return self.attempt(batch, device="cuda")
        except torch.OutOfMemoryError:
            return self.attempt(batch, device="cpu")

    def with_the_loss_on_the_host(self, batch):
        try:
            return self.attempt(batch)
        except torch.OutOfMemoryError:
            last = self.last.cpu()
            self.note(last)
            return self.attempt(batch[:1])  # leak: retry-in-except


def loads_a_second(name, quantize, other):
    model = AutoModel.from_pretrained(name)
    try:
        quantize(model)
    except RuntimeError:
        model = AutoModel.from_pretrained(name)  # leak: retry-in-except
        other(model)


def drops_the_first(name, quantize, other):
    model = AutoModel.from_pretrained(name)
    try:
        quantize(model)
    except RuntimeError:
        del model
        model = AutoModel.from_pretrained(name)
        other(model)


def loads_from_elsewhere(name, path, local):
    if local:
        model = AutoModel.from_pretrained(path)
    else:
        try:
            model = AutoModel.from_pretrained(name)
        except OSError:
            model = AutoModel.from_pretrained(path)
    return model


def on_the_host_by_name(attempt, blocks, scale=None):
    try:
        return attempt(blocks, scale)
    except torch.OutOfMemoryError:
        host = "cpu"
        blocks = blocks.to(host)
        scale = scale.to(host) if scale is not None else scale
        return attempt(blocks, scale)


def moves_the_model(attempt, layer):
    try:
        return attempt(layer)
    except torch.OutOfMemoryError:
        layer.to("cpu")
        return attempt(layer)


def elsewhere(model):
    model.to("cpu")


def moves_by_a_function(attempt, model):
    try:
        return attempt(model)
    except torch.OutOfMemoryError:
        elsewhere(model)
        return attempt(model)


def note(model):
    model.eval()


def notes_and_tries_again(attempt, model):
    try:
        return attempt(model)
    except torch.OutOfMemoryError:
        note(model)
        return attempt(model)  # leak: retry-in-except


def grows_a_buffer(buffer, size):
    try:
        buffer.resize_(size)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        buffer.resize_(size)  # what failed is torch's own, and has no frame that holds anything


def grows_by_a_function(buffer, size):
    try:
        buffer.grow(size)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        buffer.grow(size)  # leak: retry-in-except


def tells_of_it(model, prompts):
    try:
        for prompt in prompts:
            yield json.dumps(model(prompt))
    except torch.OutOfMemoryError as error:
        yield json.dumps(str(error))  # no second attempt, but what became of the first


def tells_each_kind(model, batch):
    try:
        if batch is None:
            note(Codes.NOTHING)
        return model(batch)
    except RuntimeError as error:
        if "out of memory" in str(error):
            note(Codes.MEMORY)
        return None


def tries_half(model, batch):
    try:
        return run(model, batch)
    except RuntimeError as error:
        if "out of memory" in str(error):
            return run(model, batch[:8])  # leak: retry-in-except
        raise


class Decoder:
    def decode(self, latents):
        images = None
        try:
            for at in range(0, latents.shape[0], 4):
                part = self.model.decode(latents[at : at + 4].to(self.device))
                if images is None:
                    images = torch.empty((latents.shape[0], *part.shape[1:]))
                images[at : at + 4] = part
        except torch.OutOfMemoryError:
            images = self.decode_tiled(latents)  # leak: retry-in-except
        return images

    def decode_on_host(self, latents):
        try:
            images = self.model.decode(latents)
        except torch.OutOfMemoryError:
            images = self.decode_tiled(latents.cpu())
        return images

    def decode_later(self, latents):
        failed = False
        try:
            images = self.model.decode(latents)
        except torch.OutOfMemoryError:
            failed = True
        return self.decode_tiled(latents) if failed else images

    def measure(self, latents):
        try:
            size = self.model.measure(latents)
        except torch.OutOfMemoryError:
            size = len(latents)
        return size


def logged(model, batches, log_memory):
    try:
        for batch in batches:
            model(batch)
            log_memory()
    except torch.cuda.OutOfMemoryError:
        log_memory()  # for nobody's use, and the error goes on
        raise


def asked_again(model, batches):
    try:
        return [model(batch) for batch in batches]
    except torch.cuda.OutOfMemoryError:
        return [model(batch) for batch in batches]  # leak: retry-in-except
