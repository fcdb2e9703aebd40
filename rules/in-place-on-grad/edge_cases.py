import torch


def far_away():
    val = torch.zeros(1)
    val.requires_grad_()
    print("set up")
    while True:
        val = val + 1  # leak: in-place-on-grad
        if val.item() > 1000:
            break


def fitted(steps):
    weight = torch.zeros(3, requires_grad=True)
    for _ in range(steps):
        loss = (weight * 2).sum()
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None


def unrolled(steps):
    state = torch.zeros(3, requires_grad=True)
    for _ in range(steps):
        state = state * 0.9
    state.sum().backward()


def handed_out(steps):
    state = torch.zeros(3, requires_grad=True)
    for _ in range(steps):
        state = state * 0.9
    return state


class Decaying(torch.optim.Optimizer):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                grad.add_(p, alpha=group["weight_decay"])  # leak: in-place-on-grad
                grad.add_(group["weight_decay"] * p)  # leak: in-place-on-grad
                self.state[p]["momentum"].mul_(0.9).add_(grad)
                p.data.add_(grad, alpha=-group["lr"])


class DecayingByData(torch.optim.Optimizer):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad.data
                grad.add_(p.data, alpha=group["weight_decay"])
                self.state[p]["momentum"].mul_(0.9).add_(p.grad)
                p.data.add_(grad, alpha=-group["lr"])


class DecayingWithoutGraph(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.add_(p, alpha=group["weight_decay"])


class DecayingUnderABlock(torch.optim.Optimizer):
    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad.add_(p, alpha=group["weight_decay"])


class Penalty(torch.nn.Module):
    def step(self, group, total):
        for p in group["params"]:
            total.add_(p.sum())
        return total


def perturbed(model, x, steps):
    noise = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        (slope,) = torch.autograd.grad(model(x + noise).sum(), noise)
        noise = noise - 0.1 * slope.sign()
        noise = noise.detach().requires_grad_()
    return x + noise


def perturbed_from(model, x, noise, steps):
    for _ in range(steps):
        (slope,) = torch.autograd.grad(model(x + noise).sum(), noise)
        noise = torch.clamp(noise - 0.1 * slope.sign(), -1, 1)
        noise = noise.detach()
        noise.requires_grad_()
    return x + noise


def counted(steps):
    value = torch.zeros(1)
    value.requires_grad_()
    for step in range(steps):
        if step % 2:
            value = value + 1  # leak: in-place-on-grad
    print("done")


def scaled(embedders, batch):
    parts = []
    for embedder in embedders:
        for part in embedder(batch):
            part.requires_grad_()
            part = part * 2
            parts.append(part.detach())
    return parts
