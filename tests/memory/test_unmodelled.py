from __future__ import annotations

import textwrap

import pytest

from leakcheck.errors import LeakcheckError
from leakcheck.memory.predict import predict
from leakcheck.memory.prediction import ALLOCATED_ERROR, CUDNN_NOTE, MEASURED_ERRORS, Request
from leakcheck.memory.profiles import profile
from leakcheck.memory.releases import at_least

PROGRAM = """
    import torch
    from torch import nn

    def trained(model, device):
        optimizer = torch.optim.Adam(model.parameters())

        def step():
            out = model(torch.randn(4, 7, 16, device=device))
            (out[0] if isinstance(out, tuple) else out).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    def recurrent(device):
        return trained(nn.LSTM(16, 32, batch_first=True).to(device), device)

    def compiled(device):
        return trained(torch.compile(nn.Linear(16, 8).to(device)), device)

    def compiled_in_place(device):
        model = nn.Linear(16, 8).to(device)
        model.compile()
        return trained(model, device)

    def convolution(device):
        model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Flatten(), nn.Linear(28, 2))
        optimizer = torch.optim.Adam(model.to(device).parameters())

        def step():
            model(torch.randn(4, 1, 7, 1, device=device)).sum().backward()
            optimizer.step()

        return step

    def attention(device):
        q, k, v = (
            torch.randn(2, 4, 16, 32, device=device, dtype=torch.bfloat16, requires_grad=True)
            for _ in range(3)
        )
        optimizer = torch.optim.SGD([q, k, v])

        def step():
            nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
            optimizer.step()

        return step

    def plain(device):
        return trained(nn.Linear(16, 8).to(device), device)

    def sharded(device):
        from torch.distributed.fsdp import fully_shard

        torch.distributed.init_process_group("nccl", rank=0, world_size=2)
        model = nn.Linear(16, 8).to(device)
        fully_shard(model)
        return trained(model, device)

    def elsewhere(device):
        return trained(nn.Linear(16, 8), "cpu")
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


@pytest.mark.parametrize(
    ("function", "note"),
    [
        ("recurrent", "cuDNN's recurrent kernels keep other buffers than these"),
        ("compiled", "torch.compile's code reuses buffers; the program ran uncompiled"),
        ("compiled_in_place", "torch.compile's code reuses buffers; the program ran uncompiled"),
    ],
)
def test_what_is_not_modelled_is_named_and_leaves_no_interval(program, function, note):
    prediction = predict(Request(f"{program}:{function}", device="t4"))

    assert prediction.notes == (note,)
    assert prediction.error is prediction.allocated_interval is prediction.reserved_interval is None


def test_what_was_measured_widens_the_interval_by_as_much_and_cudnn_the_context(program):
    prediction = predict(Request(f"{program}:convolution", device="t4"))

    assert prediction.notes == (CUDNN_NOTE,)
    assert prediction.error == ALLOCATED_ERROR + MEASURED_ERRORS[CUDNN_NOTE][0]
    assert prediction.context_bytes == 141_426_688


def test_attention_loads_cudnn_where_the_device_prefers_it(program):
    hopper, ampere = (
        predict(Request(f"{program}:attention", device=device)) for device in ("h200", "a100")
    )

    preferred = 16_777_216 if at_least(2, 11) else 0
    assert hopper.context_bytes == profile("h200").context_bytes + preferred
    assert ampere.context_bytes == profile("a100").context_bytes
    assert hopper.notes == ampere.notes == ()


def test_a_step_that_is_modelled_has_the_narrow_interval(program):
    prediction = predict(Request(f"{program}:plain", device="t4"))

    assert prediction.notes == ()
    assert prediction.error == ALLOCATED_ERROR


def test_a_program_without_device_tensors_is_told_so_once(program):
    with pytest.raises(LeakcheckError) as error:
        predict(Request(f"{program}:elsewhere", device="t4"))

    assert str(error.value).count("the program put no tensor on a CUDA device") == 1


def test_shards_are_said_not_to_be_modelled(program):
    if not hasattr(pytest.importorskip("torch.distributed.fsdp"), "fully_shard"):
        pytest.skip("this torch has no fully_shard there")
    told = outcome(program, "sharded")

    assert "the shards of FSDP and what it gathers are not modelled" in told


pytestmark = pytest.mark.usefixtures("forked_python")


def outcome(program, function) -> str:
    """What a prediction reserves, or why there is none."""
    try:
        prediction = predict(Request(f"{program}:{function}", device="t4"))
    except LeakcheckError as error:
        return str(error)
    assert prediction.error is None
    return " ".join(prediction.notes)
