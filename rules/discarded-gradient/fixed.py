import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(16, 256), nn.Tanh(), nn.Linear(256, 8))
discriminator = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()

for step in range(400):
    real = torch.randn(32, 8)
    fake = generator(torch.randn(32, 16))
    d_loss = criterion(discriminator(real), torch.ones(32, 1))
    d_loss = d_loss + criterion(discriminator(fake.detach()), torch.zeros(32, 1))
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()

    fake = generator(torch.randn(32, 16))
    g_loss = criterion(discriminator(fake), torch.ones(32, 1))
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
print(f"losses {d_loss.item():.3f} {g_loss.item():.3f}")
