from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from leakcheck.runtime.clock.imports import when_loaded


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "loaded_later.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield "loaded_later"
    sys.modules.pop("loaded_later", None)


def test_everyone_who_waits_acts_once_the_module_has_run(module):
    told = []
    when_loaded(module, lambda loaded: told.append(("first", loaded.value)))
    when_loaded(module, lambda loaded: told.append(("second", loaded.value)))
    before = [*sys.meta_path]

    importlib.import_module(module)

    assert sorted(told) == [("first", 1), ("second", 1)]
    assert len(sys.meta_path) == len(before) - 2


def test_asking_whether_a_module_is_there_does_not_use_up_the_wait(module):
    told = []
    when_loaded(module, lambda loaded: told.append(loaded.value))

    assert importlib.util.find_spec(module) is not None
    assert told == []
    importlib.import_module(module)

    assert told == [1]


def test_a_module_that_is_loaded_already_is_acted_on_at_once(module):
    importlib.import_module(module)
    told = []

    when_loaded(module, lambda loaded: told.append(loaded.value))

    assert told == [1]


def test_a_module_that_is_missing_stays_missing(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    when_loaded("no_such_module_anywhere", lambda loaded: None)

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
