"""A critic that steps on each step of an episode, and an actor at its end: its graph is gathered."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    actor, critic = nn.Linear(8, 2), nn.Linear(8, 1)
    of_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
    of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for _ in range(15):
        state, log_probs, advantages = torch.randn(8), [], []
        for _ in range(200):
            chosen = torch.distributions.Categorical(logits=actor(state))
            action = chosen.sample()
            value = critic(state)
            error = 1.0 - value
            of_critic.zero_grad()
            error.square().mean().backward()
            of_critic.step()
            log_probs.append(chosen.log_prob(action))
            advantages.append(error.detach())
            state = 0.9 * state + 0.1 * torch.randn(8)
        loss = -(torch.stack(log_probs) * torch.cat(advantages)).mean()
        of_actor.zero_grad()
        loss.backward()
        of_actor.step()
        print(round(loss.item(), 4))


main()
