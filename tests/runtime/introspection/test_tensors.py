from __future__ import annotations

import sys
import types
import warnings

import pytest

from leakcheck.runtime.introspection.tensors import warn_of_no_reference

# torch 2.9, PyInterpreter.cpp
TOLD = (
    "Deallocating UntypedStorage that still has live PyObject references.  This probably happened "
    "because you took out a weak reference to UntypedStorage and didn't call _fix_weakref() after "
    "dereferencing it."
)


@pytest.mark.parametrize(
    ("version", "silent"),
    [("2.4.1+cpu", True), ("2.9.0", True), ("2.10.0", False), ("3.0", False), ("", False)],
)
def test_torch_warns_of_no_reference_of_ours_where_it_would(version, silent, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__=version))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_no_reference()
        warnings.warn(TOLD, stacklevel=1)
        warnings.warn("something else", stacklevel=1)

    expected = ["something else"] if silent else [TOLD, "something else"]
    assert [str(each.message) for each in told] == expected
