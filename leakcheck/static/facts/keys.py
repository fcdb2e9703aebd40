"""Does a key stand for one of arbitrarily many things, or for one of a few? By its name alone."""

from __future__ import annotations

import re

from leakcheck.static.facts.model import Expr

# words for one request, object or input among arbitrarily many
_MANY = re.compile(
    r"(^|_)(uu?id|guid|hash|digest|fingerprint|signature|url|uri|ticket|"
    r"(request|req|session|conversation|video|image|frame|track|tracker|sample|chunk|prompt|query|"
    r"user|job|message|client|object|actor|run|seq|sequence|episode|document|doc|item|span|trace)"
    r"(_?id|_idx|_index|_key)?)$"
)


def words_of(key: Expr) -> list[str]:
    """Return the last words of the names that a key is made of, without those of constants."""
    spelled = (key.text, *key.names) if key.kind in ("name", "other") else ()
    words = [each.rpartition(".")[2].lstrip("_") for each in spelled]
    return [word for word in words if not word.isupper()]


def one_of_many(key: Expr) -> bool:
    """Tell whether a key names one of arbitrarily many."""
    return any(_MANY.search(word) for word in words_of(key))
