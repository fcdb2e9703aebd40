import torch
from diffusers import DiffusionPipeline
from torch import nn


class Reset(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.state = torch.zeros(1, 8)

    def init_hidden(self):
        self.state = torch.zeros(1, 8)

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


class Unpacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8)
        self.hidden = None

    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)  # leak: carried-state
        return out


def truncated(loader):
    rnn = nn.GRU(4, 8)
    state = None
    for x in loader:
        out, state = rnn(x, state)
        out.sum().backward()
        state = state.detach()


def retained(loader):
    rnn = nn.GRUCell(4, 8)
    state = torch.zeros(1, 8)
    for x in loader:
        state = rnn(x, state)  # leak: carried-state
        state.sum().backward(retain_graph=True)


def layers(blocks, x):
    stack = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    for block in stack:
        x = block(x)
    return x


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn_state = None

    def predict_batch(self, xs):
        self.rnn_state = None
        return [self(x) for x in xs]


class StartsAnewInItsBase(Recurrent):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8)

    def forward(self, x):
        out, self.rnn_state = self.rnn(x, self.rnn_state)
        return out


class StartsOnce(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn_state = None


class CarriesForEver(StartsOnce):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8)

    def forward(self, x):
        out, self.rnn_state = self.rnn(x, self.rnn_state)  # leak: carried-state
        return out


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.scale = torch.ones(8)

    def forward(self, x):
        query = self.query(x)
        self.scale = self.scale.to(query.device).type_as(query)  # of the type of it, no more
        return query * self.scale


class Sampler(DiffusionPipeline):
    def __call__(self, latents):
        for t in self.scheduler.timesteps:
            noise = self.unet(latents, t).sample
            latents = self.scheduler.step(  # leak: carried-state
                noise, t, latents
            ).prev_sample
        return latents


class QuietSampler(DiffusionPipeline):
    @torch.no_grad()
    def __call__(self, latents):
        for t in self.scheduler.timesteps:
            noise = self.unet(latents, t).sample
            latents = self.scheduler.step(noise, t, latents).prev_sample
        return latents


class Sampled:
    """Each sample is computed anew; the loop around only finds the last one still bound."""

    def __init__(self, model):
        self.model = model
        self.loss = nn.MSELoss()

    def scores(self, loader, samples):
        self.model.eval()
        for x in loader:
            total = 0.0
            for _ in range(samples):
                recon = self.model(x)
                total += recon.detach().numpy()

    def scores_of(self, loaders):
        self.model.eval()
        for loader in loaders:
            for x, y in loader:
                loss = self.loss(self.model(x), y)
                print(loss)

    def walked(self, loader, samples):
        cell = nn.GRUCell(4, 8)
        state = torch.zeros(1, 8)
        self.model.eval()
        for x in loader:
            for _ in range(samples):
                state = cell(x, state)  # leak: carried-state


class Parts:
    """The parts of each output are taken anew; what a turn reads before that comes from the last."""

    def __init__(self, model, with_attention):
        self.model = model
        self.with_attention = with_attention

    def in_branches(self, loader):
        self.model.eval()
        for batch in loader:
            for patch in batch:
                result = self.model(patch)
                if self.with_attention:
                    output, attention = result
                else:
                    output, _, _ = result
                print(output.sum())

    def after_all(self, loader):
        self.model.eval()
        for batch in loader:
            for patch in batch:
                output = self.model(patch)
                if self.with_attention:
                    output, attention = output
                print(output.sum())

    def begun_anew(self, loader):
        self.model.eval()
        for subject in loader:
            if self.with_attention:
                total = 0
                for patch in subject:
                    total += self.model(patch)
                total = total.cpu() / len(subject)
                print(total)

    def fed_back(self, loader):
        self.model.eval()
        output = torch.zeros(1)
        for batch in loader:
            result = self.model(batch, output)
            if self.with_attention:
                output, attention = result
            else:
                output, _, _ = result  # leak: carried-state
            print(output.sum())
