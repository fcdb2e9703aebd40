"""Meters that a dict holds, one a loss, and the losses of a criterion that returns several."""

import pytest

from leakcheck.static.engine import check_source

METER = """
import torch
from collections import OrderedDict, defaultdict

class Average:
    def __init__(self):
        self.sum = 0

    def update(self, value):
        self.sum += value
"""
TRAIN = """
def train(model, criterion, batches):
    averages = {made}
    for x, y in batches:
        losses = criterion(model(x), y)
        losses["total"].backward()
        {update}
"""
PAIRS = 'OrderedDict([(name, Average()) for name in ("total", "kl")])'
MADE = [PAIRS, f"dict({PAIRS[12:-1]})", "defaultdict(Average)", "{'total': Average()}"]
EACH_KEY = "for key in losses: averages[key].update(losses[key])"
EACH_PAIR = "for key, loss in losses.items(): averages[key].update(loss)"


def kept(made, update):
    """The lines that keep a graph."""
    found = check_source(METER + TRAIN.format(made=made, update=update))
    return [finding.context.strip() for finding in found]


@pytest.mark.parametrize("update", [EACH_KEY, EACH_PAIR])
@pytest.mark.parametrize("made", MADE)
def test_a_meter_of_a_dict_keeps_the_graph_of_each_loss(made, update):
    assert kept(made, update) == ["self.sum += value"]


@pytest.mark.parametrize("update", [EACH_KEY, EACH_PAIR])
@pytest.mark.parametrize("made", MADE)
def test_and_of_none_that_is_given_as_a_number(made, update):
    number = update.replace("losses[key])", "losses[key].item())").replace(
        "(loss)", "(loss.item())"
    )
    assert kept(made, number) == []


def test_a_dict_of_other_things_is_no_dict_of_meters():
    assert kept("defaultdict(list)", "averages['n'].append(losses['total'].item())") == []
    assert kept('OrderedDict([("n", 0)])', "averages['n'] += 1") == []


BUFFER = """
class Buffer(defaultdict):
    def __init__(self):
        super().__init__({factory})

    def update(self, values=None, **further):
        values = dict(values or {{}}, **further)
        for name, value in values.items():
            {kept}
"""


@pytest.mark.parametrize("factory", ["Average", "functools.partial(Average)"])
@pytest.mark.parametrize(
    "update", ["averages.update({'a': losses['total']})", "averages.update(n=1, a=losses['total'])"]
)
def test_a_dict_that_makes_its_meters_hands_each_loss_on(factory, update):
    buffer = "import functools\n" + METER + BUFFER
    for kept_value, found in (("value", ["self.sum += value"]), ("float(value)", [])):
        source = buffer.format(factory=factory, kept=f"self[name].update({kept_value})")
        source += TRAIN.format(made="Buffer()", update=update)

        assert [each.context.strip() for each in check_source(source)] == found
