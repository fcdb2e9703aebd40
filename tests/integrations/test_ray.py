from __future__ import annotations

import pytest
from click.testing import CliRunner

from leakcheck.cli import leakcheck
from leakcheck.integrations.ray import recorded_sentinel

pytest.importorskip("torch")
ray = pytest.importorskip("ray")
ray_train = pytest.importorskip("ray.train")
ray_torch = pytest.importorskip("ray.train.torch")
pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONBREAKPOINT", "")  # Ray sets it for all that follows
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def train_loop(config):
    import torch

    torch.set_num_threads(1)
    rank = ray_train.get_context().get_world_rank()
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    with recorded_sentinel(config["folder"]) as sentinel:
        for _ in range(200):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8)).pow(2).mean()
            loss.backward()
            optimizer.step()
            if rank == 1:
                losses.append(loss)
            sentinel.step()


def test_the_worker_that_grows_is_named(cluster, tmp_path):
    trainer = ray_torch.TorchTrainer(
        train_loop,
        train_loop_config={"folder": str(tmp_path / "records")},
        scaling_config=ray_train.ScalingConfig(num_workers=2),
        run_config=ray_train.RunConfig(storage_path=str(tmp_path / "results")),
    )

    trainer.fit()

    told = CliRunner().invoke(leakcheck, ["report", str(tmp_path / "records")])
    assert told.exit_code == 1
    assert "rank 1 growing; rank 0 steady" in told.output
    assert "losses.append(loss)" in told.output
    assert "undetached-collection, proved by this run" in told.output
