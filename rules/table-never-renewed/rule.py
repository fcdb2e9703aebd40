"""self.table.add_data(...) at every step: a table of wandb keeps every row it was given."""

from __future__ import annotations

from collections.abc import Iterator

from leakcheck.static.facts.link import Linked, sets_up
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule

_TABLES = {"wandb.Table": "add_data", "wandb.sdk.data_types.table.Table": "add_data"}


class TableNeverRenewed(Rule):
    """Tables of results that an object keeps, fills in every call and never replaces."""

    code = "LK316"
    summary = "a table of results gets rows in every call and is never replaced"
    help = "make a new table once it is logged"
    proof = "static only: for all a run knows, code of wandb or pandas may yet take the rows away"
    words = (".add_data(",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each row that a method adds to a table on self."""
        linked = module.facts
        for use in linked.facts.uses:
            adds = use.how == "add_data" and use.holder == "self"
            if adds and not sets_up(linked.facts, use.function) and _is_kept(linked, use.name):
                yield self.hit(use.at, f"`self.{use.name}` keeps every row it was ever given")


def _is_kept(linked: Linked, name: str) -> bool:
    """Whether it is made with its object, or when it is missing, and never anew."""
    binds = [(facts, use) for facts, use in linked.uses(name) if use.role == "bind"]
    made = [use for _, use in binds if use.value and use.value.text in _TABLES]
    return bool(made) and all(
        sets_up(facts, use.function) or (use.guarded and use.value and use.value.text in _TABLES)
        for facts, use in binds
    )
