"""Hold a training step to its memory in a test; a leak would fail it and name the line.

pytest examples/test_with_pytest.py
"""

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def train_step():
    torch.set_num_threads(1)
    model = torch.nn.Linear(20, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        inputs, labels = torch.randn(32, 20), torch.randint(0, 3, (32,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.leakcheck
def test_a_running_loss_keeps_no_graph(leak_sentinel, train_step):
    total_loss = 0.0
    for _ in leak_sentinel.watch(range(150)):
        total_loss += train_step().item()
    assert total_loss > 0


@pytest.mark.leakcheck(max_host="64 KiB/step")
def test_a_history_of_losses_stays_within_its_size(leak_sentinel, train_step):
    history = []
    leak_sentinel.repeat(lambda: history.append(train_step().detach()), 150)
    assert len(history) > 0
