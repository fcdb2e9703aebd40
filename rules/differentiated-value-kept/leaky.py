"""The energy leaves with its graph, although the forces are taken."""

import torch

STEPS = 200


def potential(positions):
    positions.requires_grad_(True)
    energy = (positions**2).sum()
    forces = -torch.autograd.grad(energy, positions)[0]
    return energy, forces  # leak: differentiated-value-kept


def main():
    positions, energies = torch.randn(8, 3), []
    for step in range(STEPS):
        energy, forces = potential(positions.detach())
        positions = positions + 0.01 * forces
        energies.append(energy)
    print(f"energy {float(energies[-1]):.3f}")


if __name__ == "__main__":
    main()
