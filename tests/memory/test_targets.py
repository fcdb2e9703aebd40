"""Programs as people write them, predicted as they are or refused in one line."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.errors import LeakcheckError
from leakcheck.memory.predict import predict
from leakcheck.memory.prediction import Prediction, Request

pytestmark = pytest.mark.usefixtures("forked_python")

LOOP = """
    import os, sys, threading
    import torch
    from torch import nn

    def loop(model, x):
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(5):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
"""
LAYER = 64 * 64 * 4 + 512  # one linear layer in blocks of 512 bytes
# in the optimizer's step: two cuBLAS workspaces and one of cuBLASLt; weights, gradients, two
# moments, a transient; the input and the loss
PEAK = 2 * 8_519_680 + 1_048_576 + 5 * LAYER + 1024 + 512
PLAIN = 'loop(nn.Linear(64, 64).to("cuda"), torch.randn(4, 64, device="cuda"))'


def outcome(tmp_path, body: str, *arguments: str, function: str = "") -> Prediction:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(LOOP) + textwrap.dedent(body))
    return predict(Request(f"{path}{function}", arguments, device="a100"))


@pytest.mark.parametrize(
    "body",
    [
        "loop(nn.Linear(64, 64).cuda(), torch.randn(4, 64).cuda())",
        'd = torch.device("cuda", 0)\nloop(nn.Linear(64, 64).to(d), torch.randn(4, 64).to(d))',
        # the counter of AdamW's steps was on the default device, too, before torch 2.13
        'torch.set_default_device("cuda")\nmodel, x = nn.Linear(64, 64), torch.randn(4, 64)\n'
        "torch.set_default_device(None)\nloop(model, x)",
        'with torch.device("cuda"):\n    model = nn.Linear(64, 64)\n'
        'g = torch.Generator(device="cuda").manual_seed(0)\n'
        'loop(model, torch.randn(4, 64, device="cuda", generator=g))',
        f"torch.cuda.reset_peak_memory_stats()\n{PLAIN}\ntorch.cuda.reset_peak_memory_stats()",
        f"print(torch.cuda.memory_summary(), torch.cuda.get_rng_state())\n{PLAIN}",
        f"torch.cuda.memory._record_memory_history()\n{PLAIN}",
        f"torch.multiprocessing.spawn(lambda rank: {PLAIN}, nprocs=4)",
        "loop(nn.DataParallel(nn.Linear(64, 64)).cuda(), torch.randn(4, 64).cuda())",
    ],
)
def test_every_way_to_say_cuda_gives_the_same_peak(tmp_path, body):
    prediction = outcome(tmp_path, body)

    assert prediction.mode == "fake"
    assert prediction.peak_allocated_bytes == PEAK
    assert prediction.notes == ()


def test_guards_against_what_is_not_finite_let_a_healthy_run_pass(tmp_path):
    guarded = """
        model, x = nn.Linear(64, 64).cuda(), torch.randn(4, 64).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(5):
            loss = model(x).mean()
            if not torch.isfinite(loss) or torch.isnan(loss).any() or loss != loss:
                sys.exit("not finite")
            if not (torch.isfinite(loss).all() & ~torch.isinf(loss).any()):
                continue
            loss.backward()
            optimizer.step()
            seen = loss.detach().cpu().numpy().tolist()
    """

    prediction = outcome(tmp_path, guarded)

    assert (prediction.mode, prediction.steps, prediction.notes) == ("fake", 3, ())


def test_the_buckets_of_distributed_training_are_counted_and_its_traffic_is_not(tmp_path):
    wrapped = """
        torch.distributed.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64).cuda(), device_ids=[0])
        assert torch.distributed.get_world_size() == 1
        loop(model, torch.randn(4, 64).cuda())
    """

    prediction = outcome(tmp_path, wrapped)

    bucket = 16_896  # 64 * 64 + 64 floats, in blocks of 512 bytes
    assert prediction.peak_allocated_bytes == PEAK + bucket
    assert len(prediction.notes) == 2
    assert prediction.allocated_interval is None


def test_streams_are_followed_as_one_and_that_is_said(tmp_path):
    body = f"with torch.cuda.stream(torch.cuda.Stream()):\n    {PLAIN}"

    prediction = outcome(tmp_path, body)

    assert prediction.notes == ("streams have memory of their own; all of it is counted as one",)


def test_a_prediction_leaves_the_users_files_as_they_are(tmp_path):
    kept = tmp_path / "model.pt"
    kept.write_bytes(b"trained for a week")
    body = f'torch.save({{}}, "{kept.as_posix()}")\n{PLAIN}'

    prediction = outcome(tmp_path, body)

    assert kept.read_bytes() == b"trained for a week"
    assert prediction.conditions == (
        "what the program saves is not written: these tensors hold no numbers",
    )


def test_a_module_of_the_users_named_like_one_of_torchs_is_not_taken_for_it(tmp_path, monkeypatch):
    (tmp_path / "cuda.py").write_text("raise RuntimeError\n")
    monkeypatch.chdir(tmp_path)

    assert outcome(tmp_path, PLAIN).mode == "fake"


def test_a_function_takes_its_arguments_by_name(tmp_path):
    body = """
        def train(device, width, kind="relu"):
            assert kind == "gelu"
            loop(nn.Linear(width, width, device=device), torch.randn(4, width, device=device))
    """

    prediction = outcome(tmp_path, body, "width=64", "kind=gelu", function=":train")

    assert prediction.peak_allocated_bytes == PEAK


@pytest.mark.parametrize(
    ("body", "arguments", "function", "told"),
    [
        (
            "sys.exit('no data')",
            (),
            "",
            "ended itself with 'no data' before it used the device: no",
        ),
        ("os._exit(7)", (), "", "its process ended with status 7: no message"),
        ("os.environ['LOCAL_RANK']", (), "", "a launcher sets RANK=0 LOCAL_RANK=0 WORLD_SIZE=1"),
        ("input()", (), "", "EOFError: EOF when reading a line"),
        ("def f(device): pass", ("--lr", "3"), ":f", 'a function takes NAME=VALUE, not "--lr"'),
        ("def f(device): pass", ("lr=3",), ":f", "the function takes no lr"),
        ("async def f(device): pass", (), ":f", "a coroutine or generator function cannot be call"),
    ],
)
def test_what_cannot_be_predicted_is_told_in_one_line(tmp_path, body, arguments, function, told):
    with pytest.raises(LeakcheckError) as error:
        outcome(tmp_path, body, *arguments, function=function)

    assert told in str(error.value)
    assert "\n" not in str(error.value)
