import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
for iteration in range(60):
    rollout = {"state": [], "action": [], "reward": []}
    for _ in range(30 + min(iteration, 40)):  # memory grows with the episodes, and none is kept
        state = torch.randn(6)
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=policy(state)).sample()
        for kept, value in zip(rollout.values(), (state, action, torch.randn(()))):
            kept.append(value)
    data = {name: torch.stack(values) for name, values in rollout.items()}
    for indices in torch.randperm(len(data["state"])).repeat(4).chunk(16):
        actions = torch.distributions.Categorical(logits=policy(data["state"][indices]))
        loss = -(actions.log_prob(data["action"][indices]) * data["reward"][indices]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
