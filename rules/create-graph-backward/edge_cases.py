import torch


def reset_by_hand(model, x):
    model(x).sum().backward(create_graph=True)
    norm = sum(p.grad.norm() for p in model.parameters())
    for p in model.parameters():
        p.grad = None
    return norm


def in_a_loop(model, optimizer, batches):
    for x in batches:
        optimizer.zero_grad()
        model(x).sum().backward(create_graph=True)
        optimizer.step()


def first_order(model, x):
    model(x).sum().backward(create_graph=False)


def by_parameter(model, x, create_graph):
    model(x).sum().backward(create_graph=create_graph)


def returned(model, x):
    out = model(x)
    out.backward(torch.ones_like(out), create_graph=True)  # leak: create-graph-backward
    return x.grad


def put_by_hand(model, loss):
    grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
    for p, g in zip(model.parameters(), grads):
        p.grad = g  # leak: create-graph-backward


def put_by_hand_detached(model, loss):
    grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
    for p, g in zip(model.parameters(), grads):
        p.grad = g.detach()


def put_first_order(model, loss):
    grads = torch.autograd.grad(loss, model.parameters())
    for p, g in zip(model.parameters(), grads):
        p.grad = g


def forces(model, optimizer, positions, target):
    positions = positions.detach().clone()
    positions.requires_grad_(True)
    model(positions).sum().backward(create_graph=True)  # leak: create-graph-backward
    loss = (positions.grad - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def forces_reset(model, optimizer, positions, target):
    positions = positions.detach().clone()
    positions.requires_grad_(True)
    model(positions).sum().backward(create_graph=True)
    loss = (positions.grad - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    positions.grad = None
