import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 256), nn.Tanh(), nn.Linear(256, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()

history = []
for step in range(400):
    inputs, labels = torch.randn(64, 16), torch.randint(0, 4, (64,))
    optimizer.zero_grad()
    output = model(inputs)
    loss = criterion(output, labels)
    loss.backward(retain_graph=True)  # leak: needless-retain-graph
    optimizer.step()
    history.append(loss)
print(f"loss {float(history[-1]):.3f}")
