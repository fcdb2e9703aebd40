from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakcheck.units import format_bytes, format_count, format_duration, parse_size_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("512", 512),
        ("512 B", 512),
        ("4 KiB/step", 4096),
        ("4KB", 4096),
        ("1.5 GiB", 3 << 29),
        ("2g", 2 << 30),
        (" 0 B/step ", 0),
        ("2851e6", 2_851_000_000),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size_bytes):
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "fast", "4 KiB/h", "-1", "4 parsecs", "1..2"])
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r'is not a size; write it as "512 B", "4 KiB"'):
        parse_size_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (0.25, "0.2 B"),
        (1000, "1.0 KiB"),
        (5763, "5.6 KiB"),
        (-2048, "-2.0 KiB"),
        (3 << 30, "3.0 GiB"),
        (999 << 20, "999 MiB"),
    ],
)
def test_byte_counts_have_two_or_three_digits_and_a_unit(count, text):
    assert format_bytes(count) == text


@given(st.integers(min_value=0, max_value=1 << 49))
def test_a_written_size_reads_back_within_its_precision(size_bytes):
    assert parse_size_bytes(format_bytes(size_bytes)) == pytest.approx(size_bytes, rel=0.06)


def test_counts_and_durations_carry_no_needless_digits():
    assert format_count(11.0) == "11"
    assert format_count(0.1) == "0.1"
    assert format_count(12345.67) == "12,346"
    assert format_duration(45) == "45 s"
    assert format_duration(9000) == "2.5 h"
    assert format_duration(12 * 86400) == "12 days"
