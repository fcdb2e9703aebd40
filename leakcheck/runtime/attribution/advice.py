"""What to do about a line that leaks: a pure function of the line and of what it keeps."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise

from leakcheck.model import Holder, Kind, LeakTrace, Link, Reason, Suspect
from leakcheck.runtime.attribution.library import is_optimizer_state
from leakcheck.runtime.attribution.trace import is_inner
from leakcheck.source.rewritten import registers_hook, rewritten, statement_of, written

_GENERAL: dict[str, Reason] = {
    "graph": Reason("keep-numbers"),
    "tensor": Reason("keep-a-number-or-window"),
    "object": Reason("bound-the-container"),
    "threads": Reason("end-threads"),
    "descriptors": Reason("close-each"),
    "processes": Reason("wait-for-children"),
    "shared-memory": Reason("unlink-each"),
}
# how something grows: by new keys, by what waits in a queue, or as one object
KEYED, QUEUED, LARGER = "keyed", "queued", "larger"
_BY_GROWTH = {
    KEYED: Reason("drop-old-keys"),
    QUEUED: Reason("read-the-queue"),
    LARGER: Reason("begin-anew"),
}
_WARNED = Holder("global", "__warningregistry__")
_AWAITED = ("Task", "Future")
EXIT_FUNCTIONS = Holder("exits", "atexit")
_FINALIZERS = Holder("class attribute", "_registry", "finalize")  # what weakref.finalize keeps
_FIGURES = Holder("class attribute", "figs", "Gcf")  # what pyplot keeps
_OF_ROOTS = {
    _FIGURES: Reason("close-each-figure"),
    EXIT_FUNCTIONS: Reason("unregister-from-exit"),
    _FINALIZERS: Reason("unbind-finalizer"),
    _WARNED: Reason("ignore-warnings"),
}
_PARTS_OF_OPTIMIZERS = ((".state", "defaultdict"), (".param_groups", "list"))
_REGISTERS = ("._parameters", "._buffers", "._modules", ".param_groups")
_OF_MODULES = ("ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict")
LOOK_OUTSIDE = Reason("look-outside")
NO_CREATE_GRAPH = Reason("no-create-graph")
COMPILE_ONCE = Reason("compile-once")


def fix_for(code: str, kind: Kind, *, scalar: bool | None) -> Reason | None:
    """Return the line rewritten so that it keeps no graph, or general advice.

    `scalar`: what is kept has one element, so that .item() may be offered; None for no tensor.
    """
    if kind == "graph" and scalar is None:
        return Reason("keep-no-part-of-the-graph")
    statement = statement_of(code)
    cut = ".item()" if scalar else ".detach()"
    if kind == "graph" and statement is not None:
        fix = rewritten(statement, cut)
        if fix is not None:
            return fix
    method = registers_hook(statement)
    return Reason.of("remove-hook", method=f"{method}()") if method else _GENERAL.get(kind)


def is_general(fix: Reason) -> bool:
    """Say whether a fix is said of any leak of its kind: a rule that names the line knows more."""
    return fix in (*_GENERAL.values(), *_BY_GROWTH.values())


def by_growth(fix: Reason | None, growth: str) -> Reason | None:
    """Return the fix of tensors or objects, a better one if it is general and told how they grow.

    `growth`: `KEYED`, `QUEUED`, `LARGER` or "".
    """
    is_of_container = fix in (_GENERAL["tensor"], _GENERAL["object"])
    return _BY_GROWTH.get(growth, fix) if is_of_container else fix


def fitting(suspect: Suspect) -> Reason | None:
    """Return the fix of a suspect, another one if what keeps it calls for its own."""
    if not (suspect.fix or suspect.holder or suspect.locations):
        return Reason("look-which-part")
    links = suspect.links
    at = next((place for place, link in enumerate(links) if link.suspect), None)
    if suspect.trace is not None and (by_root := _for_root(suspect.holder, suspect.kind)):
        return by_root
    if suspect.trace is None or at is None or suspect.fix == COMPILE_ONCE:
        return suspect.fix
    if suspect.kind == "graph":
        return _for_keeper(suspect.trace, at) or _without_graph(suspect, links, at)
    if suspect.kind not in ("tensor", "object"):
        return suspect.fix
    if suspect.holder.kind == "memo":
        return Reason("limit-the-memo")
    grown_in = links[at - 1].edge if at else _container(suspect.holder)
    if is_optimizer_state(suspect.holder) and not is_inner(suspect):
        return Reason("state-of-parameters-in-use")
    if suspect.holder.owner.endswith("Logger") and suspect.holder.name == "handlers":
        return Reason("remove-handlers")
    if grown_in.endswith("_hooks") and (suspect.fix is None or suspect.fix.code != "remove-hook"):
        return Reason.of("remove-hook", method="registering a hook")
    is_parameter = suspect.what.startswith("Parameter ")
    in_module = at > 0 and links[at - 1].holder in _OF_MODULES
    if grown_in in _REGISTERS or in_module or (is_parameter and links[at].edge.startswith(".")):
        return Reason("register-once")
    if is_parameter and suspect.fix is not None and is_general(suspect.fix):
        return Reason("keep-few-models")
    if links[at].holder in _AWAITED:
        return Reason.of("drop-what-is-done", container=_container(suspect.holder))
    return _for_keeper(suspect.trace, at) or suspect.fix


def _for_root(holder: Holder, kind: Kind) -> Reason | None:
    """Return what to do about what is registered somewhere until it is taken back."""
    if holder.kind == "graph hook":
        return Reason("cut-the-hook-s-cycle")
    root = holder if holder.kind == "outside" else holder.start
    if root.kind == "context variable" and kind != "graph":  # that is to be cut off first
        return Reason.of("reset-the-variable", name=root.name)
    return _OF_ROOTS.get(root)


def _for_keeper(trace: LeakTrace, at: int) -> Reason | None:
    """Return what to do about an object that keeps more than its name says.

    It is looked for from the reference that grows, at `at`, down to what leaks.
    """
    for link, inner in pairwise(trace.links[at:]):
        if inner.edge.startswith(".tb_"):
            return Reason("drop-the-traceback")
        if inner.edge.startswith("suspended "):
            return Reason.of("end-what-is-suspended", what=link.holder)
        if (inner.edge, inner.holder) in _PARTS_OF_OPTIMIZERS:
            return Reason("drop-the-optimizer")
    return None


def _without_graph(suspect: Suspect, links: Sequence[Link], at: int) -> Reason | None:
    """Return the fix of a graph, or how to free one that is inside of what is kept."""
    inside = Reason.of("detach-inside", inside=links[-1].edge, holder=_container(suspect.holder))
    if at < len(links) - 1 and links[at].edge == "[x]":
        return inside
    carried = suspect.fix is not None and suspect.fix.code == "detach-carried"
    several = any(link.edge == "[x]" for link in links)  # one of each step is kept, not carried
    if suspect.fix is not None and several:
        return inside if carried else _of_each(suspect.fix, links)
    return suspect.fix


def _of_each(fix: Reason, links: Sequence[Link]) -> Reason:
    """Return the fix of a line that adds one list to another: `kept += losses`, each by itself.

    Then what grows is one container further in than the line says.
    """
    match statement_of(str(fix.get("code") or "")):
        case ast.AugAssign(
            target=target, value=ast.Call(func=ast.Attribute(value=added, attr=cut), args=[])
        ):
            said = sum(isinstance(part, ast.Subscript) for part in ast.walk(target))
            if sum(link.edge.startswith("[") for link in links) > said:
                each = f"[each.{cut}() for each in {ast.unparse(added)}]"
                return written(f"{ast.unparse(target)} += {each}")
    return fix


def _container(holder: Holder) -> str:
    """Return the name of a container, with the class of an attribute."""
    return holder.named.qualified or "the container"
