from __future__ import annotations

import pytest

from leakcheck.errors import UsageError
from leakcheck.memory.profiles import profile, profiles

MIB = 1 << 20


def test_every_profile_can_be_read_and_is_plausible():
    for key, each in profiles().items():
        assert each.key == key
        assert 4 << 30 < each.memory_bytes < 1 << 40
        assert 50 * MIB < each.context_bytes < 2048 * MIB


def test_only_hopper_has_the_large_workspace():
    larger = {key for key, each in profiles().items() if each.workspace_bytes == 32 * MIB}

    assert larger == {"h100", "h200"}
    assert {profiles()[key].workspace_bytes for key in profiles().keys() - larger} == {8_519_680}


def test_bfloat16_is_native_from_ampere_on():
    assert [profile(key).native_bf16 for key in ("t4", "a100", "h200")] == [False, True, True]


def test_only_a_measured_context_says_so():
    assert profile("t4").context_measured
    assert not profile("a100").context_measured


def test_where_a_size_of_memory_is_from_is_said():
    sources = {key: each.memory_source for key, each in profiles().items()}

    assert sources["t4"] == sources["h200"] == "measured"
    assert sources["b200"] == sources["rtx5090"] == "data sheet"
    assert set(sources.values()) == {"measured", "usual", "data sheet"}


def test_names_are_read_whatever_their_case():
    assert profile(" H200 ") is profile("h200")


@pytest.mark.parametrize(
    ("name", "hint"), [("a100-80", 'did you mean "a100'), ("tpu", "known are t4")]
)
def test_an_unknown_device_is_refused_with_the_nearest_name(name: str, hint: str):
    with pytest.raises(UsageError, match=hint):
        profile(name)
