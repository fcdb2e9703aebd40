"""How lines name what grows: as what the holder is named after, or as an element of that."""

from __future__ import annotations

from leakcheck.model import Suspect


def is_inner(suspect: Suspect) -> bool:
    """Say whether what grows is an element of what the holder is named after: a list a class."""
    return any(edge.startswith("[") for edge in _edges(suspect)[:-1])


def names_on_way(suspect: Suspect) -> frozenset[str]:
    """Return the keys of text that lead to what grows: `["trace"]` in `optimizer.state[p]`."""
    return frozenset(edge[2:-2] for edge in _edges(suspect) if edge.startswith('["'))


def _edges(suspect: Suspect) -> list[str]:
    """Return the references from the root to what grows, or to the newest element of it."""
    links = suspect.links
    grows = next((i for i, link in enumerate(links) if link.suspect), len(links) - 1)
    return [link.edge for link in links[: max(0, grows) + 1]]
