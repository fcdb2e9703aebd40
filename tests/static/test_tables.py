"""Tables of pending work: who takes the entries out, and on which paths?"""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source

PENDING = """
import torch
from peers import log, wait_for

_pending = {}


def start(handle, tensor):
    _pending[handle] = tensor


def wait(handle):
    try:
        wait_for(handle)
        return _pending.pop(handle)
    except RuntimeError as error:
        raise ConnectionError(handle) from error
"""
SERVER = """
import torch


class Server:
    def __init__(self):
        self.requests = {}
        self.running = {}

    def add_request(self, request_id, prompt):
        self.requests[request_id] = prompt
        self.running[request_id] = prompt

    def finish_request(self, request_id):
        del self.running[request_id]
"""


def flagged(slug: str, source: str) -> list[str]:
    rule = [rule for rule in registry.builtin_rules() if rule.slug == slug]
    return [f.context.strip() for f in check_source(textwrap.dedent(source), "a.py", rule)]


def test_an_entry_popped_after_work_that_may_raise_is_lost_when_it_does():
    assert flagged("entry-lost-on-error", PENDING) == ["return _pending.pop(handle)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        wait_for(handle)\n        return", "        return"),
        ("        wait_for(handle)", "        log.debug(handle)"),
        ("except RuntimeError as error:", "except KeyError as error:"),
        ("        raise Conn", "        _pending.pop(handle, None)\n        raise Conn"),
        ("    try:", "    entry = _pending.pop(handle)\n    try:", ),
        ("error:\n", "error:\n        forget()\n", ),
    ],
)  # fmt: skip
def test_an_entry_that_goes_one_way_or_the_other_is_not_lost(old, new):
    source = PENDING.replace(old, new)
    if "entry =" in new:
        source = source.replace("return _pending.pop(handle)", "return entry")
    if "forget" in new:
        source += "\n\ndef forget():\n    _pending.clear()\n"
    assert source != PENDING
    assert flagged("entry-lost-on-error", source) == []


def test_a_request_that_leaves_one_table_and_not_the_other_stays():
    assert flagged("undrained-requests", SERVER) == ["self.requests[request_id] = prompt"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("del self.running[request_id]", "print(request_id)"),
        ("del self.running[request_id]",
         "del self.running[request_id]\n        self.requests.pop(request_id)"),
        ("self.requests[request_id] =", "self.requests[key] ="),
        ("def finish_request", "def endpoint_of"),
    ],
)  # fmt: skip
def test_a_class_that_ends_no_work_by_its_id_drains_nothing(old, new):
    source = SERVER.replace(old, new)
    assert source != SERVER
    assert flagged("undrained-requests", source) == []
