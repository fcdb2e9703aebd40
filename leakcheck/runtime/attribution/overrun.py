"""Did the source cut back what grows, and it grows all the same? Four come in, one is taken out."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from leakcheck.model import Suspect
from leakcheck.runtime.attribution.emptying import compares_sizes, removes_from
from leakcheck.runtime.attribution.names import names_of
from leakcheck.runtime.attribution.predicates import branches_in

FEWEST_CUTS = 2  # in a window, after which something that still grows is not held by them


def was_cut_in_vain(suspect: Suspect, visits: Mapping[tuple[str, int], int]) -> bool:
    """Say whether a branch that removes by a size ran again and again while this grew.

    `visits`: how often each line ran meanwhile. Of several containers that share the source, one
    may be full and another not: ask only of one that has more than its limit.
    """
    for place in suspect.locations:
        for name, within in names_of(suspect, place):
            for branch in branches_in(within):
                if isinstance(branch, ast.If) and compares_sizes(branch.test):
                    line = branch.body[0].lineno
                    ran = visits.get((place.path, line), 0) if line != branch.lineno else 0
                    if ran >= FEWEST_CUTS and removes_from(branch, name):
                        return True
    return False
