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
