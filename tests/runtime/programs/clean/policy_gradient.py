import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-3)
for episode in range(330):
    log_probs, rewards, state = [], [], torch.randn(4)
    while True:  # the first update comes after 300 steps, and needs the graph of each
        actions = torch.distributions.Categorical(logits=policy(state))
        action = actions.sample()
        log_probs.append(actions.log_prob(action))
        rewards.append(float(action))
        state = torch.randn(4)
        if len(rewards) >= (15 if episode else 300):
            break
    loss = -(torch.stack(log_probs) * torch.tensor(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
