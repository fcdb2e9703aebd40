import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(), nn.Linear(32, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
for step in range(1300):
    for _ in range(2):
        real, fake = torch.randn(16, 16), generator(torch.randn(16, 8)).detach()
        critic_optimizer.zero_grad()
        (critic(fake).mean() - critic(real).mean()).backward()
        critic_optimizer.step()
    generator_optimizer.zero_grad()
    (-critic(generator(torch.randn(16, 8))).mean()).backward()
    generator_optimizer.step()
