"""What the processes of a run are called: by their ranks, or as the program calls them."""

from __future__ import annotations

from collections.abc import Sequence

from leakcheck.model import Report

RANK, MAIN = "rank ", "the main process"
MOST_NAMED = 8  # of more only the number is told


def names_of(reports: Sequence[Report]) -> list[str]:
    """Name each process: by its rank where that tells all of them apart, else by its own name."""
    ranks = [report.run.rank if report.run else None for report in reports]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return [f"{RANK}{rank}" for rank in ranks]
    return [(report.run.process if report.run else "") or MAIN for report in reports]


def are_ranks(names: Sequence[str]) -> bool:
    """Say whether processes are named by their ranks."""
    return all(name.startswith(RANK) for name in names)


def listed(names: Sequence[str]) -> str:
    """Write names in a row, as "ranks 0, 1"; of many processes only how many there are."""
    if are_ranks(names):
        numbers = ", ".join(name.removeprefix(RANK) for name in names)
        return f"{'rank' if len(names) == 1 else 'ranks'} {numbers}"
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} processes"
