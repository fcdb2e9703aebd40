import torch
from torch import nn

rows, vocabulary = [], {}
for number in range(20000):
    rows.append(torch.tensor([number % 7, number % 5]).float())
    vocabulary.setdefault(f"w{number}", len(vocabulary))
torch.manual_seed(0)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    history = []
    for start in range(0, 4000, 8):
        loss = model(torch.stack(rows[start : start + 8])).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    with torch.no_grad():
        predictions = [model(row) for row in rows[:2000]]
