"""What a place on the way of a finding has to do with it, in words."""

from __future__ import annotations

from leakcheck.model import Evidence, EvidenceRole

_SAID: dict[EvidenceRole, str] = {
    "graph": "`{}` gives it its graph",
    "handed": "handed on to `{}`",
    "kept": "kept in `{}`",
    "returned": "returned by `{}`",
    "restored": "`{}` takes it",
    "closing": "`{}` does not release it",
}


def said(evidence: Evidence) -> str:
    """Say it in a few words, as in "kept in `self.total`"."""
    return _SAID[evidence.role].format(evidence.name)
