"""Which release of torch this is, where a rule came with one."""

from __future__ import annotations

import re

import torch


def at_least(major: int, minor: int) -> bool:
    """Return whether torch is this release or a later one."""
    told = re.findall(r"\d+", torch.__version__)
    return (int(told[0]), int(told[1])) >= (major, minor)
