"""A finding through several functions or files says where its value is made, handed on, kept."""

from textwrap import dedent

from leakcheck.model import Location
from leakcheck.static import registry
from leakcheck.static.engine import check_source
from leakcheck.static.project import Project

METERS = """\
class Average:
    def __init__(self):
        self.total = 0

    def update(self, value):
        self.total += value
"""
TRAIN = """\
import torch
from meters import Average

def train(model, criterion, optimizer, loader):
    seen = Average()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        seen.update(loss)
"""


def evidence_of(source, slug, files=()):
    project = Project({"train.py": source, **dict(files)})
    rules = [rule for rule in registry.builtin_rules() if rule.slug == slug]
    (finding,) = check_source(source, "train.py", rules, project)
    return [(each.role, each.name, each.location) for each in finding.evidence]


def test_a_meter_in_another_file_is_named_with_what_feeds_it():
    assert evidence_of(TRAIN, "undetached-meter", {"meters.py": METERS}.items()) == [
        ("graph", "criterion", Location("train.py", 7, 16, 7, 38)),
        ("handed", "seen.update", Location("train.py", 10, 9, 10, 26)),
        ("kept", "self.total", Location("meters.py", 6, 9, 6, 28)),
    ]


def test_what_one_function_shows_needs_no_evidence():
    source = TRAIN.replace("seen.update(loss)", "total += loss").replace("Average()", "total = 0")

    assert evidence_of(source, "undetached-accumulator") == []


def test_a_checkpoint_is_followed_to_the_caller_that_restores_it():
    source = dedent(
        """\
        import torch

        def best_weights(path):
            return torch.load(path)
        """
    )
    caller = dedent(
        """\
        from train import best_weights

        def finish(model, path):
            model.load_state_dict(best_weights(path))
        """
    )

    assert evidence_of(source, "load-without-map-location", {"end.py": caller}.items()) == [
        ("returned", "best_weights", Location("train.py", 4, 12, 4, 28)),
        ("restored", "model.load_state_dict", Location("end.py", 4, 5, 4, 46)),
    ]


def test_a_closing_method_is_named_with_what_it_leaves_open():
    source = dedent(
        """\
        class Both:
            def __init__(self, path):
                self.log = open(path)
                self.data = open(path)

            def close(self):
                self.log.close()
        """
    )

    assert evidence_of(source, "resource-left-by-owner") == [
        ("closing", "close", Location("train.py", 6, 5, 6, 10))
    ]


def test_two_objects_that_hold_each_other_are_named_in_both_files():
    source = dedent(
        """\
        from parts import Stream

        class Server:
            def respond(self, request):
                response = Response(request)
                response.stream = Stream(response)
                return response
        """
    )
    parts = dedent(
        """\
        class Stream:
            def __init__(self, owner):
                self.owner = owner
        """
    )

    assert evidence_of(source, "back-reference", {"parts.py": parts}.items()) == [
        ("kept", "self.owner", Location("parts.py", 3, 9, 3, 19))
    ]
