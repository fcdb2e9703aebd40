"""How well the predictor meets peaks that others measured on a real GPU.

    pip install transformers && python tests/benchmarks/predictor_accuracy.py

Six training runs on a Tesla T4 (torch 2.11, cu128; published with torch-preflight 0.5 as
calibration fixtures): `max_memory_allocated` of the second step under bfloat16 autocast with AdamW.
bfloat16 is emulated there, so attention takes the math path; the model's output lives through
backward and the optimizer step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import mean
from time import perf_counter

MEASURED_BYTES = {
    ("gpt2", 4, 128): 2_705_153_536,
    ("gpt2", 8, 256): 5_736_883_712,
    ("distilbert", 4, 128): 1_354_818_048,
    ("distilbert", 8, 256): 1_757_328_384,
    ("bert", 4, 128): 2_209_738_240,
    ("bert", 8, 256): 3_185_408_000,
}


def train(kind: str, batch: int, length: int, device: object) -> Callable[[], None]:
    """Build the model and return its training step."""
    import torch
    import transformers

    config, model_class = {
        "gpt2": (transformers.GPT2Config(), transformers.GPT2LMHeadModel),
        "distilbert": (transformers.DistilBertConfig(), transformers.DistilBertModel),
        "bert": (transformers.BertConfig(), transformers.BertModel),
    }[kind]
    model = model_class(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, config.vocab_size - 1, (batch, length), device=device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            labels = {"labels": ids} if kind == "gpt2" else {}
            out = model(input_ids=ids, **labels)
            loss = out.loss if labels else out.last_hidden_state.float().pow(2).mean()
        loss.backward()
        optimizer.step()

    return step


# the predictor calls a function by its name
for _kind, _batch, _length in MEASURED_BYTES:
    globals()[f"{_kind}_{_batch}_{_length}"] = partial(train, _kind, _batch, _length)


def main() -> None:
    """Predict every point and print the table."""
    from leakcheck.memory.predict import predict
    from leakcheck.memory.prediction import Request

    errors = []
    print(f"{'run':<20}{'predicted':>16}{'measured':>16}{'error':>10}{'seconds':>9}")
    for (kind, batch, length), measured in MEASURED_BYTES.items():
        began_s = perf_counter()
        target = f"{__file__}:{kind}_{batch}_{length}"
        prediction = predict(Request(target, device="t4", steps=2))
        error = prediction.peak_allocated_bytes / measured - 1
        errors.append(abs(error))
        name = f"{kind} {batch}x{length} {prediction.mode}"
        seconds = perf_counter() - began_s
        print(
            f"{name:<20}{prediction.peak_allocated_bytes:>16,}{measured:>16,}"
            f"{error:>10.3%}{seconds:>9.1f}"
        )
    print(f"mean error {mean(errors):.3%}, worst {max(errors):.3%}")


if __name__ == "__main__":
    sys.exit(main())
