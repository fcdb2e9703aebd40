"""What may not matter is of low confidence; its twin, which differs in a line, is not."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

import pytest

from leakcheck.static import registry
from leakcheck.static.checker import Checker, Settings
from leakcheck.static.engine import check_source
from leakcheck.static.project import Project
from leakcheck.static.select import Layer


class Twins(NamedTuple):
    code: str
    source: str
    low: str  # what stands for LINE where nothing shows that it matters
    told: str


BASE_KEEPS_METHODS = """
    import torch

    class Offload(torch.autograd.graph.saved_tensors_hooks):
        def __init__(self):
            super().__init__(self.pack, self.unpack)
        def pack(self, tensor): ...
        def unpack(self, tensor): ...

    def make():
        manager = Offload()
        return manager

LINE
"""
ONE_FOR_A_TRAINER = """
    class Recipe:
        def setup(self):
            self.manager = make()
            self.loss = Loss()
        def run(self):
            self.loss().backward()
"""
FEATURES = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.backbone = torch.nn.Linear(size, size)
        def features(self, image):
            return self.backbone(image).detach()

"""
WORKERS = """
    import asyncio
    import multiprocessing
    from concurrent.futures import ThreadPoolExecutor

    def run(jobs):
        workers = LINE
        return list(workers.map(work, jobs))
"""
ONE_MODEL = """
    import functools
    from torch import nn

    def extend(model):
        model.ATTRIBUTE
        return model

    def main(sizes):
        LINE

    main([4, 8])
"""
TWINS = {
    "a cache of the one model there is": Twins(
        "LK301",
        """
        import functools
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(4, 4)

            @functools.lru_cache(maxsize=None)
            def scaled(self, size):
                return 2 * size

            def forward(self, x):
                LINE
                return self.fc(y)

        net = Net()
        """,
        "y = x * self.scaled(x.shape[0])",
        "y = self.scaled(x)",
    ),
    "a wrapper that one model keeps": Twins(
        "LK205",
        ONE_MODEL.replace("ATTRIBUTE", "forward = functools.partial(scaled, model.forward)"),
        "train(extend(nn.Linear(4, 4)))",
        "for size in sizes: train(extend(nn.Linear(4, size)))",
    ),
    "a function that one model keeps": Twins(
        "LK214",
        ONE_MODEL.replace("ATTRIBUTE", "score = lambda x: model(x).sum()"),
        "train(extend(nn.Linear(4, 4)))",
        "for size in sizes: train(extend(nn.Linear(4, size)))",
    ),
    "weights for a model that is being made": Twins(
        "LK403",
        """
    import torch

    class Detector:
        def __init__(self, path):
            self.model = Net().cuda()
            weights = torch.load(path)["params_ema"]
            self.model.load_state_dict(weights)
        def save(self, path):
            LINE
""",
        "return path",
        "torch.save(self.model.state_dict(), path)",
    ),
    "methods given to a base": Twins(
        "LK209",
        BASE_KEEPS_METHODS,
        ONE_FOR_A_TRAINER,
        """
    def encode(batches):
        for batch in batches:
            with make():
                run(batch)
""",
    ),
    "state by length": Twins(
        "LK315",
        """
    class Transformer:
        def __init__(self):
            self.masks = {}
        def forward(self, x):
            LINE
            self.masks[seq] = self.mask(x)
""",
        "seq, _ = x.shape[:2]",
        "seq = x.name",
    ),
    "state for each of what is kept": Twins(
        "LK315",
        """
    class Watch:
        def __init__(self):
            self.jobs = {}
            self.stats = {}
        def add_job(self, job_id, process):
            self.jobs[job_id] = process
        def look(self):
            for job_id, process in self.jobs.items():
                self.stats[job_id] = Stats(process)
        def end(self, job_id):
            LINE
""",
        "pass",
        "self.jobs.pop(job_id)",
    ),
    "shapes by name": Twins(
        "LK312",
        """
    class Compressor:
        def __init__(self):
            self.shapes = {}
        def compress(self, tensor, name, request_id):
            self.shapes[LINE] = tensor.shape
""",
        "name",
        "request_id",
    ),
    "a pass that a method returns and nobody asks for": Twins(
        "LK406",
        FEATURES
        + """
    def run(model, images):
        return [model.LINE(image) for image in images]
""",
        "backbone",
        "features",
    ),
    "one pass whose graph goes with its values": Twins(
        "LK406",
        FEATURES
        + """
    def run(model, images):
        LINE
""",
        "return model.features(images)",
        "return [model.features(image) for image in images]",
    ),
    "a model whose constructor calls what freezes it": Twins(
        "LK406",
        """
    import torch

    def get_layer():
        layer = torch.nn.Linear(4, 4)
        for parameter in layer.parameters():
            LINE
        return layer

    class Features(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = get_layer()
        def forward_all(self, x):
            return self.layer(x)

    def one(model, tile):
        y = model.forward_all(tile)
        return y.cpu().detach().numpy()

    def embed(tiles):
        model = Features()
        return [one(model, tile) for tile in tiles]
""",
        "parameter.requires_grad = False",
        "parameter.requires_grad = True",
    ),
    "a pass that may give a derivative": Twins(
        "LK406",
        """
    import torch

    class Field(torch.nn.Module):
        def forward(self, x):
            energy = self.energy(x)
            return energy, LINE

    class Calculator:
        def __init__(self, model):
            self.model = model
            self.model.eval()
        def calculate(self, batches):
            for x in batches:
                energy, forces = self.model(x)
                print(energy.item(), forces.tolist())
""",
        "torch.autograd.grad(energy.sum(), x)[0]",
        "-x",
    ),
    "hooks of a function whose error ends the script": Twins(
        "LK207",
        """
    def measure(model, x):
        handle = model.register_forward_hook(print)
        model(x)
        handle.remove()

    def main(model, inputs):
        for x in inputs:
            LINE

    if __name__ == "__main__":
        main(*load())
""",
        "measure(model, x)",
        "try: measure(model, x)\n            except ValueError: pass",
    ),
    "a data module": Twins(
        "LK204",
        """
    import torch
    from functools import partial
    from pytorch_lightning import LightningDataModule

    class Data(LightningDataModule):
        def __init__(self, data):
            self.train_dataloader = partial(self.load, data)
            self.table = torch.zeros(2)
        def load(self, data): ...

    def run(folds):
        LINE
            data = Data(fold)
            fit(data)
""",
        "if fold := folds:",
        "for fold in folds:",
    ),
    "a module that holds a function over itself": Twins(
        "LK204",
        """
    import torch

    class Search(torch.nn.Module):
        def __init__(self, part):
            super().__init__()
            self.part = part
            self.restore = lambda: restore(self.part)

    def work(trials):
        LINE
            search = Search(trials)
            search(trials)
""",
        "if trials:",
        "for trial in trials:",
    ),
    "a function over self that a method makes": Twins(
        "LK204",
        """
    import torch

    class Engine:
        def __init__(self):
            self.weights = torch.zeros(9)
            self.handlers = []
        def _wrap(self, handler):
            def wrapper(*args):
                return handler(self, *args)
            return wrapper
        def add(self, handler):
            wrapped = self._wrap(handler)
            self.handlers.append(wrapped)

    LINE
        engine = Engine()
        engine.add(1)
""",
        'if __name__ == "__main__":',
        "for request in requests:",
    ),
    "methods given to a base by what holds little": Twins(
        "LK209",
        """
    import torch
    from pkg import Mapper

    class Pipe(Mapper):
        def __init__(self, pipe, sampler):
            super().__init__(pipe, self.sample)
            self.sampler = sampler
        def sample(self, batch):
            LINE
            return self.sampler(batch)

    def work(batches):
        for batch in batches:
            pipe = Pipe(batch, pick)
            run(pipe)
""",
        "pass",
        "torch.cuda.current_stream().synchronize()",
    ),
    "hooks of an object that a script makes once": Twins(
        "LK201",
        """
    class Profiler:
        def __init__(self, model):
            self.seen = 0
            model.register_forward_hook(self.count)
        def count(self, module, inputs, output): ...

    def main(models):
        LINE
            Profiler(model)

    if __name__ == "__main__":
        main(load())
""",
        "if model := models:",
        "for model in models:",
    ),
    "hooks on a foreign module": Twins(
        "LK201",
        """
    class Recorder:
        def watch(self, model):
            model.register_forward_hook(lambda m, i, out: self.seen.append(out))

    LINE
""",
        "recorder = Recorder()",
        "for model in models: Recorder().watch(model)",
    ),
    "hooks that users put on a model": Twins(
        "LK201",
        """
    class Counter:
        def __init__(self, model):
            self.model = model
            self._count()
        def LINE(self):
            for layer in self.model.modules():
                layer.register_forward_hook(lambda module, inputs, output: print(module))
""",
        "watch",
        "_count",
    ),
    "hooks on each layer of what a script has": Twins(
        "LK201",
        """
    class Counter:
        def __init__(self, model):
            for layer in model.modules():
                layer.register_forward_hook(lambda module, inputs, output: print(module))

    def main(models):
        LINE
            Counter(model)

    if __name__ == "__main__":
        main(load())
""",
        "if model := models:",
        "for model in models:",
    ),
    "what atexit calls that nobody else does": Twins(
        "LK208",
        """
    import atexit
    import torch

    class Server:
        def __init__(self):
            self.weights = torch.zeros(8)
            atexit.register(self.LINE)
        def _flush(self): ...
        def shutdown(self): ...
""",
        "_flush",
        "shutdown",
    ),
    "what atexit keeps until it is ended": Twins(
        "LK208",
        """
    import atexit
    import torch

    class Server:
        def __init__(self):
            self.weights = torch.zeros(8)
            atexit.register(self.shutdown)
        def shutdown(self):
            LINE
""",
        "atexit.unregister(self.shutdown)",
        "self.weights = None",
    ),
    "what atexit keeps of one of a kind": Twins(
        "LK208",
        """
    import atexit
    import torch

    class LINE:
        def __init__(self):
            self.weights = torch.zeros(8)
            atexit.register(self.shutdown)
        def shutdown(self): ...

    server = LINE()
""",
        "_Server",
        "Server",
    ),
    "a table of work that may be of a few": Twins(
        "LK308",
        """
    class Pool:
        def __init__(self):
            self.started = {}
        def add(self, LINE_id, work):
            self.started[LINE_id] = work
        def finish(self, LINE_id):
            del self.running[LINE_id]
            self.slots.pop(LINE_id)
""",
        "worker",
        "request",
    ),
    "a table of work that others may empty": Twins(
        "LK308",
        """
    class Scheduler:
        def __init__(self):
            self.requests = {}
        def add_request(self, request_id, prompt):
            self.requests[request_id] = prompt
        def finish(self, request_id):
            del self.running[request_id]
            del self.slots[request_id]
        def collect(self, request_id):
            return self.requests.pop(request_id)

    def serve(scheduler, other, request_id):
        LINE
""",
        "scheduler.collect(request_id)",
        "scheduler.finish(request_id)",
    ),
    "a tensor's hook": Twins(
        "LK203",
        """
    import torch

    class Offload:
        def ask(self, x):
            self.last = x * 2
            self.last.register_hook(self.save)
        def save(self, grad): ...

    def run(batches):
        LINE
            offload = Offload()
            offload.ask(batch)
""",
        "if batch := batches:",
        "for batch in batches:",
    ),
    "a writer": Twins(
        "LK605",
        """
    from torch.utils.tensorboard import SummaryWriter

    class Log:
        def __init__(self, folder):
            self.writer = SummaryWriter(folder)

    class Study:
        def run(self, folders):
            LINE
                log = Log(folder)
                log.note()
""",
        "if folder := folders:",
        "for folder in folders:",
    ),
    "an object that nobody knows": Twins(
        "LK213",
        """
    import torch

    class Note:
        def __init__(self, of):
            self.of = of

    class Model(torch.nn.Module):
        def note(self, other):
            LINE
        def copy(self):
            return type(self)()
""",
        "other.note = Note(other)",
        "self.note = Note(self)",
    ),
    "a part of what a call gives out": Twins(
        "LK213",
        """
    class Stream:
        def __init__(self, response):
            self.response = response

    class Client:
        def send(self, request):
            response = LINE
            response.stream = Stream(response)
            return response
""",
        "request or self.last",
        "self.transport.handle(request)",
    ),
    "what a framework sets": Twins(
        "LK213",
        """
    import torch

    class Callback:
        def __init__(self, other):
            self.model = torch.nn.Linear(2, 2)
            LINE
        def before_fit(self):
            self.learn.callback = self
        def copy(self, other):
            return self.__class__(other)
""",
        "pass",
        "self.learn = other",
    ),
    "methods kept by an object of which there may be one": Twins(
        "LK212",
        """
    import torch

    class Model(torch.nn.Module):
        def choose(self, fast):
            self.run = self.run_fast
        def run_fast(self): ...
        def copy(self):
            return LINE
""",
        "other(self.size)",
        "type(self)(self.size)",
    ),
    "a recursive function of an object of which there may be one": Twins(
        "LK211",
        """
    import torch

    class Tree(torch.nn.Module):
        def walk(self, node):
            def below(node):
                return [below(each) for each in node] + self.seen
            return below(node)

    def run(batches):
        LINE
            tree = Tree(batch)
""",
        "if batch := batches:",
        "for batch in batches:",
    ),
    "an object that holds its part": Twins(
        "LK213",
        """
    import torch

    class Note:
        def __init__(self, of):
            self.of = of

    class Model(torch.nn.Module):
        def note(self):
            self.noted = Note(self)

    def run(batches):
        LINE
            model = Model(batch)
""",
        "if batch := batches:",
        "for batch in batches:",
    ),
    "a wrapper for a while": Twins(
        "LK205",
        """
    import torch

    def export(model, x):
        def forward(x):
            return {"out": model.decode(x)}
        model.forward = forward
        write(model, x)
        LINE
""",
        "model.forward = model.decode",
        "return model",
    ),
    "a retry in the host's memory": Twins(
        "LK402",
        """
    import torch

    def make_room(model):
        for part in model.children():
            part = LINE

    def run(model, batch):
        try:
            return work(model, batch)
        except torch.OutOfMemoryError:
            room = make_room(model)
            return work(model, batch)
""",
        'part.to("cpu")',
        "part.half()",
    ),
    "a pass of what may be a wrapper": Twins(
        "LK406",
        """
    import torch

    class Wrapper:
        def __call__(self, texts):
            with LINE:
                return self.inner(texts)

    def predict(model, texts):
        found = []
        for text in texts:
            found.append(model(text).argmax().item())
        return found
""",
        "torch.no_grad()",
        "self.lock",
    ),
    "a pass of a module without parameters": Twins(
        "LK406",
        """
    import torch

    class Patches(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.size = LINE
        def forward(self, image):
            return cut(image, self.size)
        def indexes(self, grid):
            return self(grid).argmax().tolist()

    def run(model, grids):
        return [model.indexes(grid) for grid in grids]
""",
        "2 * size",
        "torch.nn.Linear(size, size)",
    ),
    "a pass whose values are thrown away": Twins(
        "LK406",
        """
    import torch

    def check(model, samples):
        for sample in samples:
            LINE
""",
        "model(sample).detach().cpu().numpy()",
        "seen = model(sample).detach().cpu().numpy(); log(seen)",
    ),
    "a pass of what the project makes": Twins(
        "LK406",
        """
    import torch

    class Model(LINE):
        def __init__(self, sizes):
            super().__init__()
            self.part = torch.nn.Linear(*sizes)
        def forward(self, x):
            return self.part(x)

    def predict(sizes, batches):
        model = Model(sizes)
        found = []
        for batch in batches:
            found.append(model(batch).argmax().item())
        return found
""",
        "Compiled",
        "torch.nn.Module",
    ),
    "a graph in a slot of a list": Twins(
        "LK102",
        """
    import torch

    def attack(model, loader, optimizer, count):
        found = LINE
        for epoch in range(9):
            for i, x in enumerate(loader):
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                found[i] = loss
""",
        "[None] * count",
        "{}",
    ),
    "a batch that a framework has moved": Twins(
        "LK407",
        """
    import torch

    class Model:
        def LINE(self, batch, index):
            x, y = batch
            x.to("cuda")
            return x - y
""",
        "training_step",
        "compare",
    ),
    "one of several things that a call gives": Twins(
        "LK407",
        """
    import torch

    def make(sizes):
        LINE
        embeddings.to("cuda")
        return embeddings
""",
        "embeddings, size = table(sizes)",
        "embeddings = torch.zeros(sizes)",
    ),
    "a list of an object for one search": Twins(
        "LK312",
        """
    class Beam:
        def __init__(self):
            self._scores = []
        def advance(self, scores):
            self._scores.append(scores)

    def search(sentences):
        for sentence in sentences:
            LINE
            beam.advance(sentence)
""",
        "beam = Beam()",
        "beam = make_beam()",
    ),
    "a function on a model for a while": Twins(
        "LK214",
        """
    import torch
    from functools import partial

    def replace(model):
        LINE
        def forward(model, x):
            return x
        model.forward = partial(forward, model)
        return model

    def recover(model):
        model.forward = model.kept
""",
        "model.kept = model.forward",
        "model.kept = None",
    ),
    "a cache of words": Twins(
        "LK303",
        """
    import torch

    WORDS = {}

    def split(text):
        if text not in WORDS:
            parts = tuple(text)
            parts = LINE
            WORDS[text] = parts
        return WORDS[text]

    def run(texts):
        return [split(text) for text in texts]
""",
        '" ".join(parts)',
        "features(text, parts)",
    ),
    "a cache of what may be few": Twins(
        "LK303",
        """
    import torch

    TABLES = {}

    def table(text):
        if text not in TABLES:
            TABLES[text] = torch.tensor(numbers(text))
        return TABLES[text]

    def run(texts):
        LINE
            work(table(text))
""",
        "if text := texts:",
        "for text in texts:",
    ),
    "words kept on self": Twins(
        "LK315",
        """
    class Store:
        def __init__(self):
            self._cache = {}
        def ask(self, prompt):
            found = LINE
            self._cache[prompt] = found
            return found
""",
        "prompt.lower()",
        "self.model(prompt)",
    ),
    "what is text by its name, kept on self": Twins(
        "LK315",
        """
    class Decoder:
        def __init__(self):
            self._known = {}
        def verify(self, sample):
            self._known[sample.sample_id] = LINE
""",
        "sample.source_digest",
        "sample.frames",
    ),
    "a key that is made of a few": Twins(
        "LK315",
        """
    class Store:
        def __init__(self):
            self._tables_cache = {}
        def ask(self, height, width, request):
            table_key = f"{height}_{LINE}"
            self._tables_cache[table_key] = self.table(height, width)
            return self._tables_cache[table_key]
""",
        "width",
        "request.request_id",
    ),
    "a key that a method makes": Twins(
        "LK315",
        """
    class Store:
        def __init__(self):
            self._tables_cache = {}
        def ask(self, request):
            table_key = LINE
            self._tables_cache[table_key] = self.table(request)
            return self._tables_cache[table_key]
""",
        "self.key_of(request)",
        "request.request_id",
    ),
    "graphs of the parts of a batch": Twins(
        "LK102",
        """
    import torch

    def step(model, batch, optimizer):
        losses = []
        for part in batch.chunk(4):
            loss = model(part).sum()
            loss.backward()
            losses.append(loss)
            LINE
        return torch.stack(losses).mean().item()
""",
        "pass",
        "optimizer.step()",
    ),
    "graphs that wait in a queue": Twins(
        "LK102",
        """
    import torch

    def run(model, loader, optimizer):
        waiting = []
        def finish():
            LINE
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            waiting.append(loss)
            finish()
""",
        "waiting.pop(0).item()",
        "print(len(waiting))",
    ),
    "a sum over the parts of a batch": Twins(
        "LK101",
        """
    import torch

    def step(model, batch, optimizer):
        total = 0
        for part in LINE:
            loss = model(part).sum()
            loss.backward()
            total += loss
        optimizer.step()
        print(total.item())
""",
        "batch.chunk(4)",
        "loader",
    ),
    "a pass to warm up": Twins(
        "LK406",
        """
    import torch

    def measure(model, samples):
        model.eval()
        for sample in samples:
            LINE
""",
        "_ = model(sample)",
        "seen = model(sample); log(seen)",
    ),
    "a pass of what may choose its mode": Twins(
        "LK406",
        """
    import contextlib
    import torch

    class Model(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.part = torch.nn.Linear(size, size)
        def forward(self, x):
            mode = LINE
            with mode:
                return self.part(x)

    def predict(size, batches):
        model = Model(size)
        found = []
        for batch in batches:
            found.append(model(batch).argmax().item())
        return found
""",
        "torch.no_grad() if self.fixed else contextlib.nullcontext()",
        "self.lock",
    ),
    "a pass about nothing but zeros": Twins(
        "LK406",
        """
    import torch

    class Net(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.backbone = torch.nn.Linear(size, size)
        def look(self, image, size):
            return self.backbone(LINE).detach().numpy()

    def run(model, images):
        return [model.look(image, 2) for image in images]
""",
        "torch.zeros(1, size)",
        "image",
    ),
    "a handle that a function gives beside its output": Twins(
        "LK113",
        """
    import torch

    class Dispatch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out, kept = dispatch(x)
            out = LINE
            ctx.kept = kept
            return out, kept
""",
        "out * 2",
        "out * kept",
    ),
    "a stream for one step": Twins(
        "LK607",
        """
    import torch

    class Runner:
        def step(self, batch):
            LINE
                stream = torch.cuda.Stream()
                run(stream, batch)
""",
        "if self.count == self.warmup:",
        "if self.fast:",
    ),
    "what is filled for a while only": Twins(
        "LK320",
        """
    class Log:
        def __init__(self):
            self.rows = []
            self.groups = []
        def record(self, row):
            self.rows.append(row)
            LINE
                self.groups.append(make(row))
        def newest(self):
            return self.groups[-1]
        def reset(self):
            self.rows = []
""",
        "if self.warming_up:",
        "with self.lock:",
    ),
    "a socket of an object that times blocks": Twins(
        "LK605",
        """
    import socket

    class Detector:
        def LINE(self, port):
            self.sock = socket.socket()
            self.sock.bind(port)
        def __enter__(self):
            self.start_clock()
        def __exit__(self, *error):
            self.stop_clock()
""",
        "listen",
        "__init__",
    ),
    "a sum of what may be numbers": Twins(
        "LK105",
        """
    import torch

    def update(model, batch):
        loss = model(batch).sum()
        if loss == 0.0:
            return loss
        loss.backward()
        return loss.item()

    def run(model, loader, every):
        total = LINE
        while True:
            for i, batch in enumerate(loader):
                total += update(model, batch)
                if i % every == 0:
                    total = total / every
                    print(total)
                    total = 0
""",
        "0",
        "torch.zeros(1, requires_grad=True)",
    ),
    "a history of what is calculated": Twins(
        "LK312",
        """
    class Trainer:
        def __init__(self):
            self._history = []
        def epoch(self, outputs, count):
            mean = LINE
            self._history.append(mean)
""",
        "-sum(outputs) / count",
        "self.mean(outputs)",
    ),
    "a list of parameters": Twins(
        "LK102",
        """
    import torch

    def train(model, layers, loader, optimizer):
        kept = []
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            kept.append(LINE)
        print(len(kept))
""",
        "{'params': model.parameters()}",
        "{'loss': loss}",
    ),
    "what a constructor fills for its object": Twins(
        "LK303",
        """
    import torch

    class Response:
        def __init__(self, props, table):
            if table is None:
                self.table = {}
            else:
                self.table = table
LINE
            for prop in props:
                if prop not in self.table:
                    self.table[prop] = torch.zeros(prop)
""",
        "            self.props = props",
        "        def look(self, props):",
    ),
    "what may be the name of a data set": Twins(
        "LK302",
        """
    from functools import lru_cache

    import torch

    @lru_cache
    def prompts(dataset):
        return build({"card": LINE})
""",
        "dataset",
        "dataset.card",
    ),
    "the name of a model, of which the function has a list": Twins(
        "LK302",
        """
    from functools import lru_cache

    import torch

    @lru_cache
    def build(model):
        if LINE:
            return torch.zeros(1)
        return load(model[0])
""",
        'model == "base"',
        "model is not None",
    ),
    "a pass in a manager that chooses the gradient mode": Twins(
        "LK406",
        """
    import contextlib
    import torch

    class Trainer:
        @contextlib.contextmanager
        def in_mode(self, training):
            self.network.train(training)
            with LINE:
                yield

        def predict(self, loader):
            with self.in_mode(False):
                for batch in loader:
                    out = self.network(batch)
                    log(out.shape)

        def size(self):
            return sum(each.numel() for each in self.network.parameters())
""",
        "torch.set_grad_enabled(training)",
        "timed(training)",
    ),
    "a pass of a model that is frozen for a while": Twins(
        "LK406",
        """
    import contextlib
    import torch

    @contextlib.contextmanager
    def kept(model):
        for part in model.parameters():
            LINE
        yield

    def evaluate(model, loader):
        model.eval()
        with kept(model):
            for batch in loader:
                out = model(batch)
                log(out.shape)
""",
        "part.requires_grad = False",
        "part.note = False",
    ),
    "a function that another traces": Twins(
        "LK114",
        """
    import torch

    def build(stage, tracer):
        def step(x, target):
            loss = stage(x, target)
            grads = torch.autograd.grad(loss, [x])
            return loss, grads
        return LINE
""",
        "tracer(step)",
        "step(1, 2)",
    ),
    "threads of an executor": Twins(
        "LK604", WORKERS, "ThreadPoolExecutor(4)", "asyncio.new_event_loop()"
    ),
    "processes of a pool that is dropped": Twins(
        "LK604", WORKERS, "multiprocessing.Pool(4)", "asyncio.new_event_loop()"
    ),
    "a cached method of an object of the module's": Twins(
        "LK301",
        """
    from functools import cache

    class Kernel:
        @cache
        def check(self):
            return find(self.name)

    LINE
""",
        "kernel = Kernel()",
        "",
    ),
    "a checkpoint that may be of the CPU": Twins(
        "LK403",
        """
    import torch

    def load(path):
        model = Net()
        state = torch.load(path)
        model.load_state_dict(LINE)
        return model
""",
        "state",
        "{k.removeprefix('module.'): v for k, v in state.items()}",
    ),
    "a checkpoint of a model that is made for whoever asks": Twins(
        "LK403",
        """
    import torch

    def save(model, path):
        torch.save(model.state_dict(), path)

    def load(path):
        model = Net()
        state = torch.load(path)
        model.load_state_dict(state)
        LINE
""",
        "return model",
        "run(model)",
    ),
    "a checkpoint before the model moves": Twins(
        "LK403",
        """
    import torch

    def load(path):
        model = Net()
        LINE
        state = torch.load(path)
        model.load_state_dict(state)
        return model.cuda()
""",
        "model.eval()",
        "model.cuda()",
    ),
    "a checkpoint of an object that is made": Twins(
        "LK403",
        """
    import torch

    class Runner:
        def LINE(self, path):
            state = torch.load(path)
            self.model.load_state_dict(state)
""",
        "__init__",
        "resume",
    ),
    "a checkpoint that was saved from the host": Twins(
        "LK403",
        """
    import torch

    def save(model, path):
        state = {name: each.LINE for name, each in model.state_dict().items()}
        torch.save(state, path)

    def reload(model, path):
        states = torch.load(path)
        model.load_state_dict(states)
        run(model)
""",
        "cpu()",
        "half()",
    ),
    "a checkpoint of a part that a constructor makes": Twins(
        "LK403",
        """
    import torch

    class Model:
        def LINE(self, path):
            self.head = torch.nn.Linear(768, 2)
            state = torch.load(path)
            self.head.load_state_dict(state)

        def save(self, path):
            torch.save(self.head.state_dict(), path)
""",
        "__init__",
        "reload",
    ),
    "a checkpoint that a script gives at once": Twins(
        "LK403",
        """
    import torch

    LINE
    torch.save(model.state_dict(), "after.pt")
""",
        'model.load_state_dict(torch.load("before.pt"))',
        'state = torch.load("before.pt"); model.load_state_dict(state)',
    ),
    "a checkpoint that is let go of as the statement ends": Twins(
        "LK403",
        """
    import torch

    def train(model, batches, optimizer, path):
        model.cuda()
        LINE
        optimizer.zero_grad()
        for batch in batches:
            model(batch).backward()
            optimizer.step()
""",
        'model.load_state_dict(torch.load(path)["model"])',
        "state = torch.load(path); model.load_state_dict(state)",
    ),
    "hooks that only look": Twins(
        "LK207",
        """
    def summary(model, batch):
        found = {}

        def measure(module, args, output):
            first = output[0] if isinstance(output, tuple) else output
            found[type(module).__name__] = LINE

        handle = model.register_forward_hook(measure)
        model(batch)
        handle.remove()
        return found
""",
        "[*first.shape, int(first.numel())]",
        "first",
    ),
    "hooks that note a number in a name around them": Twins(
        "LK207",
        """
    def largest(model, batch):
        most = 0

        def note(module, args, output):
            nonlocal most
            most = LINE

        handle = model.register_forward_hook(note)
        model(batch)
        handle.remove()
        return most
""",
        "max(most, output.numel())",
        "output",
    ),
    "hooks that a helper adds, and that only count": Twins(
        "LK207",
        """
    def counting(model):
        def count(module, args):
            LINE
        return count

    def add(model):
        count = counting(model)
        return [layer.register_forward_pre_hook(count) for layer in model.modules()]

    def run(model, batch):
        handles = add(model)
        model(batch)
        for handle in handles:
            handle.remove()
""",
        "module.calls += 1",
        "raise StopIteration",
    ),
    "outputs that may be a list of arrays": Twins(
        "LK401",
        """
    import torch

    def test(model, data_loader):
        results = []
        for data in data_loader:
            with torch.no_grad():
                result = model(data)
            results.LINE(result)
        return results
""",
        "extend",
        "append",
    ),
    "figures of a script for what it names": Twins(
        "LK601",
        """
    import matplotlib.pyplot as plt

    def main(results, loader):
        LINE
            plt.figure()
            plt.plot(value)
            plt.savefig(f"{name}.png")
""",
        "for name, value in results.items():",
        "for name, value in loader:",
    ),
    "a method given to a base by what is light": Twins(
        "LK209",
        """
    import torch

    class Loss:
        def __init__(self, function):
            self.function = function

    class Both(Loss):
        def __init__(self, first):
            LINE
            super().__init__(self.add)
        def add(self, a, b):
            return a + b

    def work(batches):
        for batch in batches:
            loss = Both(batch)
            loss(batch)
""",
        "self.part = torch.nn.MSELoss(); self.use_weights = first",
        "self.weights = first",
    ),
    "metrics of each round": Twins(
        "LK312",
        """
    class Tracker:
        def __init__(self):
            self.LINE = {}
        def finish(self, round):
            self.LINE[round.round_id] = round.summary
""",
        "_round_metrics",
        "_round_outputs",
    ),
    "a history under a public name": Twins(
        "LK312",
        """
    class Cropper:
        def __init__(self):
            self.LINE = []
        def crop(self, frame):
            self.LINE.append(cut(frame))
""",
        "crop_history",
        "crops",
    ),
}


def confidence(code: str, source: str) -> list[str]:
    rules = [rule for rule in registry.builtin_rules() if rule.code == code]
    return [found.confidence for found in check_source(dedent(source), "a.py", rules)]


@pytest.mark.parametrize("case", TWINS.values(), ids=TWINS.keys())
def test_what_may_not_matter_is_of_low_confidence(case):
    assert confidence(case.code, case.source.replace("LINE", case.low.strip("\n"))) == ["low"]


@pytest.mark.parametrize("case", TWINS.values(), ids=TWINS.keys())
def test_what_is_known_to_matter_is_not(case):
    (found,) = confidence(case.code, case.source.replace("LINE", case.told.strip("\n")))

    assert found in ("medium", "high")


LATE = "def work(model):\n    from pkg.fast import run\n    return run(model)\n"


@pytest.mark.parametrize(
    ("importer", "behind", "said"),
    [
        ("from pkg.fast import run\n", "", "low"),  # frames of modules, whose names stay anyway
        (LATE, "", "high"),
        (LATE, "def run(model):\n    raise ValueError(f'{failed}')\n", "low"),
        ("", "def run(model):\n    raise ValueError(f'{failed}')\n", "high"),
        (LATE + "from pkg import fast\n", "", "low"),  # which comes first
    ],
)
def test_a_kept_import_error_matters_where_a_function_goes_on_without(importer, behind, said):
    source = behind + dedent("""
        import torch
        failed = None
        try:
            import triton
        except ImportError as error:
            failed = error
    """)
    project = Project({"pkg/__init__.py": "", "pkg/fast.py": source, "pkg/user.py": importer})
    (rule,) = (each for each in registry.builtin_rules() if each.code == "LK306")

    found = check_source(source, "pkg/fast.py", [rule], project)

    assert [each.confidence for each in found] == [said]


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ((), False),
        ((Layer(select=("ALL",)),), True),
        ((Layer(extend_select=("LK303",)),), True),
        ((Layer(select=("growing-cache",)), Layer(extend_select=("LK101",))), True),
        ((Layer(extend_select=("LK101",)),), False),
        ((Layer(select=("LK303",)), Layer(select=("LK3",), ignore=("LK303",))), False),
    ],
)
def test_low_confidence_is_told_to_who_asks_for_the_rule(tmp_path, layers, told):
    words = TWINS["a cache of words"]
    file = tmp_path / "a.py"
    file.write_text(dedent(words.source.replace("LINE", words.low)))

    found = Checker(Settings(layers=layers)).check(file).findings

    assert bool(found) == told


@pytest.mark.parametrize(("path", "said"), [("tests/test_model.py", "low"), ("model.py", "medium")])
def test_a_checkpoint_in_a_test_was_saved_by_it(path, said):
    body = "torch.save(model.state_dict(), f)\n    state = torch.load(f)"
    body += "\n    model.load_state_dict(state)"
    source = f"import torch\n\ndef test(model, f):\n    {body}\n"
    (rule,) = (each for each in registry.builtin_rules() if each.code == "LK403")

    found = check_source(source, path, [rule])

    assert [each.confidence for each in found] == [said]


BRIEF = {
    "LK102": """
        def run(model, loader, optimizer):
            losses = []
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                losses.append(loss)
            print(len(losses))
    """,
    "LK111": """
        def run(model, x):
            model(x).sum().backward(create_graph=True)
    """,
}


@pytest.mark.parametrize(
    ("path", "begin", "said"),
    [
        ("tests/test_model.py", "", "low"),
        ("pkg/test_model.py", "import pytest", "low"),
        ("pkg/test_model.py", "", "high"),  # a script that tests a model
        ("tests/model.py", "", "high"),
        ("pkg/testing/model.py", "from unittest import TestCase", "low"),  # helps the tests
        ("pkg/training/model.py", "from unittest import TestCase", "high"),
    ],
)
@pytest.mark.parametrize("code", BRIEF)
def test_what_a_test_keeps_ends_with_it(code, path, begin, said):
    (rule,) = (each for each in registry.builtin_rules() if each.code == code)

    found = check_source(f"{begin}\nimport torch\n" + dedent(BRIEF[code]), path, [rule])

    assert [each.confidence for each in found] == [said]


@pytest.mark.parametrize(("kind", "told"), [("Module", False), ("Batch", False), ("Tensor", True)])
def test_what_is_annotated_as_no_tensor_may_move_in_place(kind, told):
    source = f"import torch\n\ndef run(x: {kind}):\n    x.to('cpu')\n    return x\n"

    assert bool(confidence("LK407", source)) == told


@pytest.mark.parametrize(("end", "told"), [("raise Caught", False), ("return x", True)])
def test_a_pass_that_ends_in_an_error_catches_once(end, told):
    source = f"""
        import torch

        class Catcher(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.seen = []
            def forward(self, x):
                self.seen.append(x)
                {end}
    """

    assert bool(confidence("LK313", source)) == told


@pytest.mark.parametrize(("second", "told"), [("elif", False), ("if", True)])
def test_hooks_of_another_branch_are_those_of_another_call(second, told):
    source = f"""
        import torch

        class Mask:
            def enable(self, value, model):
                if value:
                    self.handle = model.register_forward_hook(self.hook)
                    self.prepare(model)
                {second} self.handle:
                    self.handle.remove()
    """

    assert bool(confidence("LK207", source)) == told


@pytest.mark.parametrize(("given", "told"), [("model, other", False), ("other", True)])
def test_a_model_that_is_loaded_on_top_of_the_first_needs_it(given, told):
    source = f"""
        from pkg import Base

        def load(path, other):
            model = Base.from_pretrained(path)
            try:
                model.merge(check(model))
                merge(model)
            except ValueError:
                model = Base.from_pretrained({given})
            return model
    """

    assert bool(confidence("LK402", source)) == told


@pytest.mark.parametrize(("returned", "told"), [("ax", False), ("data", True)])
def test_who_gets_the_axes_reaches_the_figure(returned, told):
    source = f"""
        import torch
        import matplotlib.pyplot as plt

        def make_figure():
            fig, ax = plt.subplots()
            return fig, ax

        def draw(data):
            _, ax = make_figure()
            ax.imshow(data)
            return {returned}
    """

    assert bool(confidence("LK610", source)) == told


@pytest.mark.parametrize(("then", "told"), [("plt.pause(0.1)", False), ("print(path)", True)])
def test_a_figure_that_is_shown_while_the_program_waits_is_looked_at(then, told):
    source = f"""
        import torch
        import matplotlib.pyplot as plt

        def draw(data, path):
            plt.figure()
            plt.plot(data)
            plt.savefig(path)
            {then}
    """

    assert bool(confidence("LK601", source)) == told


@pytest.mark.parametrize(("made", "told"), [("io.StringIO()", False), ("connect(path)", True)])
def test_a_buffer_in_memory_goes_with_its_object(made, told):
    source = f"""
        import io
        import torch
        from pkg import connect

        class Writer:
            def __init__(self, path):
                self.buffer = {made}
            def flush(self):
                send(self.buffer)
            def close(self):
                self.flush()
    """

    assert bool(confidence("LK605", source)) == told
