"""One loss is kept a step, in every way to write it; its number may be kept in all of them."""

from __future__ import annotations

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

BEGIN = """
import bisect, collections, dataclasses, functools, heapq, types
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()


def put(store, value):
    store.append(value)


class Store:
    losses = []


TOTAL = 0


def note(value):
    global TOTAL
    TOTAL = TOTAL + value


@dataclasses.dataclass
class State:
    losses: list = dataclasses.field(default_factory=list)


class Meter:
    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    def __call__(self, value):
        self.update(value)

    def __iadd__(self, value):
        self.update(value)
        return self


class Logger:
    def __init__(self):
        self.meters = collections.defaultdict(Meter)

    def log(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)

"""
TRAIN = """
{made}
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{kept}
"""
WAYS = {
    "sum_list": ("total = 0", "total = sum([total, loss])"),
    "plus_list": ("losses = []", "losses = losses + [loss]"),
    "iplus_list": ("losses = []", "losses += [loss]"),
    "insert": ("losses = []", "losses.insert(0, loss)"),
    "star": ("losses = []", "losses = [*losses, loss]"),
    "extend": ("losses = []", "losses.extend([loss])"),
    "get_plus": ("stats = {}", "stats['loss'] = stats.get('loss', 0) + loss"),
    "setdefault": ("stats = {}", "stats.setdefault('loss', []).append(loss)"),
    "method_add": ("total = torch.zeros(())", "total = total.add(loss)"),
    "torch_add": ("total = torch.zeros(())", "total = torch.add(total, loss)"),
    "add_": ("total = torch.zeros(())", "total.add_(loss)"),
    "key_step": ("history = {}", "history[step] = loss"),
    "update": ("history = {}", "history.update({step: loss})"),
    "ior": ("history = {}", "history |= {step: loss}"),
    "namespace": ("meter = types.SimpleNamespace(total=0)", "meter.total = meter.total + loss"),
    "namespace_aug": ("meter = types.SimpleNamespace(total=0)", "meter.total += loss"),
    "defaultdict": ("d = collections.defaultdict(float)", "d['loss'] += loss"),
    "defaultdict_list": ("d = collections.defaultdict(list)", "d['loss'].append(loss)"),
    "counter": ("d = collections.Counter()", "d['loss'] += loss"),
    "stack_sum": ("total = torch.zeros(())", "total = torch.stack([total, loss]).sum()"),
    "deque": ("losses = collections.deque()", "losses.append(loss)"),
    "tuple_plus": ("losses = ()", "losses = losses + (loss,)"),
    "tuple_iplus": ("losses = ()", "losses += (loss,)"),
    "pairs": ("log = []", "log.append((step, loss))"),
    "dicts": ("log = []", "log.append({'step': step, 'loss': loss})"),
    "cat": ("outs = torch.empty(0)", "outs = torch.cat((outs, loss.view(1)))"),
    "cat_list": ("outs = torch.empty(0)", "outs = torch.cat([outs, loss[None]])"),
    "heap": ("h = []", "heapq.heappush(h, (step, loss))"),
    "insort": ("h = []", "bisect.insort(h, loss)"),
    "nested": ("log = {'train': {'loss': []}}", "log['train']['loss'].append(loss)"),
    "nested_total": ("log = {'train': {'loss': 0.0}}", "log['train']['loss'] += loss"),
    "dictcomp_sum": (
        "metrics = {}",
        "out = {'loss': loss}\nmetrics = {k: metrics.get(k, 0) + v for k, v in out.items()}",
    ),
    "listcomp_sum": (
        "totals = [0, 0]",
        "totals = [t + l for t, l in zip(totals, [loss, loss * 2])]",
    ),
    "for_dict_sum": (
        "metrics = collections.defaultdict(float)",
        "out = {'loss': loss}\nfor k, v in out.items():\n    metrics[k] += v",
    ),
    "ema": ("avg = None", "avg = loss if avg is None else 0.9 * avg + 0.1 * loss"),
    "ema_if": (
        "avg = None",
        "if avg is None:\n    avg = loss\nelse:\n    avg = 0.9 * avg + 0.1 * loss",
    ),
    "maximum": ("worst = torch.zeros(())", "worst = torch.maximum(worst, loss)"),
    "array_of_rows": ("table = [[], []]", "table[step % 2].append(loss)"),
    "partial": ("later = []", "later.append(functools.partial(print, loss))"),
    "divided": ("total = 0", "total += loss / 10"),
    "mean_of": ("total = 0", "total = total + loss * x.size(0)"),
    "walrus": ("total = 0", "print(total := total + loss)"),
    "two_names": ("a = b = 0", "a, b = a + loss, b + 1"),
    "via_fn": ("losses = []", "put(losses, loss)"),
    "via_class_attr": ("", "Store.losses.append(loss)"),
    "global_fn": ("", "note(loss)"),
    "dataclass": ("state = State()", "state.losses.append(loss)"),
    "method_meter": ("meter = Meter()", "meter.update(loss)"),
    "meter_call": ("meter = Meter()", "meter(loss)"),
    "meter_iadd": ("meter = Meter()", "meter += loss"),
    "meter_dict": ("meters = {'loss': Meter()}", "meters['loss'].update(loss)"),
    "meter_getattr": ("logger = Logger()", "logger.log(loss=loss)"),
    "set_add": ("seen = set()", "seen.add(loss)"),
}


def found(made: str, kept: str) -> list[str]:
    source = BEGIN + TRAIN.format(made=made, kept="".join(f"    {x}\n" for x in kept.split("\n")))
    rules = [rule for rule in registry.default_rules() if rule.code.startswith("LK1")]
    return [finding.rule for finding in check_source(source, "a.py", rules)]


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_that_is_kept_in_any_way_keeps_its_graph(way):
    assert found(*WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_without_its_graph_may_be_kept_in_any_way(way):
    made, kept = WAYS[way]

    assert found(made, f"loss = loss.detach()\n{kept}") == []


def test_what_a_heap_gives_back_at_each_step_is_not_kept():
    assert found("h = []", "heapq.heappush(h, (step, loss))\nif len(h) > 9: heapq.heappop(h)") == []


def test_places_that_are_exchanged_take_in_nothing():
    assert found("a = b = 0", "a, b = b, loss.detach()") == []


def test_an_entry_that_is_overwritten_at_each_step_is_none_more():
    assert found("last = {}", "last.update({'loss': loss})") == []
