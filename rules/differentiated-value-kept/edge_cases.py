"""Near misses are unmarked."""

import torch
from torch.autograd import grad


def stored(energy, positions):
    results = {}
    results["energy"] = energy  # leak: differentiated-value-kept
    results["forces"] = -grad(energy.sum(), positions)[0]
    return results


def alone(energy, positions):
    grads = grad(energy, positions)
    return grads, energy  # leak: differentiated-value-kept


def detached(energy, positions):
    forces = grad(energy, positions)[0]
    energy = energy.detach()
    return energy, forces


def number(energy, positions):
    return grad(energy, positions)[0], energy.item()


def trained(energy, positions):
    forces = torch.autograd.grad(energy, positions, create_graph=True)[0]
    return energy, forces


def asked_twice(energy, positions, cell):
    forces = grad(energy, positions, retain_graph=True)[0]
    return energy, forces, grad(energy, cell)[0]


def learns(loss, positions):
    forces = grad(loss, positions)[0]
    loss.backward()
    return loss, forces


def summed_in_place(pairs, distances, index):
    energy = torch.zeros(8)
    energy.index_add_(0, index, 0.5 * pairs)
    results = {"forces": None}
    results["energy"] = energy  # leak: differentiated-value-kept
    (results["forces"],) = torch.autograd.grad(pairs.sum(), distances)
    return results


def detached_and_summed(pairs, distances, index):
    energy = torch.zeros(8)
    energy.index_add_(0, index, 0.5 * pairs.detach())
    results = {}
    results["energy"] = energy.detach()
    (results["forces"],) = torch.autograd.grad(pairs.sum(), distances)
    return results


def solved(optimizer, point, potential):
    def closure():
        loss = potential(point).sum()
        point.grad = grad(loss, point)[0]
        return loss  # as an optimizer asks for it, and drops it

    optimizer.step(closure)


def solved_by_hand(point, potential, minimize):
    def closure():
        loss = potential(point).sum()
        point.grad = grad(loss, point)[0]
        return loss  # leak: differentiated-value-kept

    minimize(closure)


def cut_as_it_leaves(energy, positions):
    results = {}
    results["energy"] = energy
    results["forces"] = -grad(energy.sum(), positions)[0]
    return {name: value.detach() for name, value in results.items()}


def only_moved_as_it_leaves(energy, positions):
    results = {}
    results["energy"] = energy  # leak: differentiated-value-kept
    results["forces"] = -grad(energy.sum(), positions)[0]
    return {name: value.cpu() for name, value in results.items()}
