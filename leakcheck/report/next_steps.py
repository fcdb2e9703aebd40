"""What to do about an unclear verdict: one sentence for each code of its reason."""

from __future__ import annotations

from leakcheck.model import Report

_LONGER = "let it run for two to three times as many steps"
_UNTIL_FULL = (
    "let it run until that is full, or try it with a lower limit: what is full gains no more"
)
_BY_SHAPE = (
    "let it run until so many shapes were seen, or try it with batches of one shape: what a "
    "library keeps for each then stops, and a leak goes on"
)
_IS_IT_MEANT = (
    "if what is named is meant to be kept, nothing is wrong; if not, drop it after its use"
)
NEXT = {
    "too-few-steps": _LONGER,
    "too-few-recorded": _LONGER,
    "nothing-judged": _LONGER,
    "cut-off": _LONGER,
    "unconfirmed": _LONGER,
    "unattributed": _LONGER,
    "rose": _LONGER,
    "climbs": _LONGER,
    "too-few-rises": _LONGER,
    "did-not-go-on": _LONGER,
    "too-few-requests": "send as many requests again, or more",
    "crept": f"{_LONGER}: memory that is not in use, but lies between what is, gains ever less",
    "not-full-yet": _UNTIL_FULL,
    "goes-on-yet": _UNTIL_FULL,
    "new-shapes": _BY_SHAPE,
    "uneven": _BY_SHAPE,
    "may-be-taken": "let it run until that line has taken something: it is a leak if it does not",
    "loop-may-release": "let it run until the loop around the steps has turned two or three times",
    "went-on": "let it run for two to three times as many steps, or see with --refs FILE what else "
    "holds what is kept",
    "once-a-training": _IS_IT_MEANT,
    "no-graph": _IS_IT_MEANT,
    "cycles-pile-up": "call gc.collect() every so often, or leave the collector on",
    "copies-do-not-fit": "start fewer workers, or keep the data in arrays or tensors",
    "shared-memory-grows": "look for what makes blocks there and calls no .unlink()",
}
# their own sentences say it
SAID_ALREADY = frozenset(
    ["failed", "stopped-watching", "no-steps", "no-steps-in", "steps-in-children", "children-grow"]
)


def next_text(report: Report) -> str:
    """Say what to do about an unclear verdict; "" where there is nothing more to say."""
    if report.verdict != "unclear" or report.reason is None:
        return ""
    within_steps = report.reason.get("within_steps")
    within = f" within {within_steps:,} steps" if isinstance(within_steps, int) else ""
    return NEXT.get(report.reason.code, "") + within
