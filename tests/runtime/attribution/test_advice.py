from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import SGD

from leakcheck.model import LeakTrace, Link, Reason, Suspect
from leakcheck.report.reasons import said
from leakcheck.runtime.attribution.advice import KEYED, LARGER, QUEUED, by_growth, fitting, fix_for
from leakcheck.source.rewritten import adds_without_graph
from tests.holders import held_by


@pytest.mark.parametrize(
    ("line", "scalar", "fix"),
    [
        ("total_loss += loss", True, "total_loss += loss.item()"),
        ("self.sum += value * n", True, "self.sum += (value * n).item()"),
        ("total = total + loss", True, "total = total + loss.item()"),
        (
            "self.sum = getattr(self, 'sum', 0) + self.loss",
            True,
            "self.sum = getattr(self, 'sum', 0) + self.loss.item()",
        ),
        ("d['x'] = d.get('x', 0) + loss", True, "d['x'] = d.get('x', 0) + loss.item()"),
        ("losses.append(loss)", True, "losses.append(loss.item())"),
        ("features.append(output)  # keep", False, "features.append(output.detach())"),
        ("by_step[step] = loss", True, "by_step[step] = loss.item()"),
        ("h = cell(x, h)", False, "detach what is carried over: h = h.detach()"),
    ],
)
def test_a_leaking_line_is_rewritten_so_that_it_keeps_no_graph(line, scalar, fix):
    assert said(fix_for(line, "graph", scalar=scalar)) == fix


def test_a_line_that_cannot_be_rewritten_gets_general_advice():
    advice = "keep numbers: .item() for a scalar, .detach() for a tensor"

    assert said(fix_for("for batch in loader:", "graph", scalar=True)) == advice
    assert said(fix_for("losses.extend(a, b)", "graph", scalar=True)) == advice
    assert said(fix_for("records.append((step, loss))", "graph", scalar=True)) == advice
    assert said(fix_for("by_step[step] = {'loss': loss}", "graph", scalar=True)) == advice


def test_a_number_is_never_detached():
    carried = "detach what is carried over: val = val.detach()"

    assert said(fix_for("val += 1", "graph", scalar=False)) == carried
    assert said(fix_for("val = val + 1", "graph", scalar=False)) == carried


@given(st.text())
def test_no_line_whatever_breaks_it(line):
    assert said(fix_for(line, "graph", scalar=False))


@pytest.mark.parametrize(
    ("line", "method"),
    [
        ("model[1].register_forward_hook(note)", "register_forward_hook()"),
        ("register_module_forward_hook(note)", "register_module_forward_hook()"),
    ],
)
def test_a_hook_that_is_never_removed_is_told_how_to_be(line, method):
    assert said(fix_for(line, "object", scalar=False)) == (
        f"keep the handle that {method} returns and call its .remove() after use"
    )


NUMBER = Reason("keep-a-number-or-window")
REGISTERED = (
    "what is registered in a module or an optimizer stays there: register it once, "
    "or take it out (del) after use"
)


def held(
    *edges: str, what: str = "Tensor (4) float32", growing: str = "[x]", table: str = ""
) -> Suspect:
    """Return a suspect whose trace has these references, the growing one marked."""
    links = tuple(Link(edge, table, suspect=edge == growing) for edge in edges)
    return Suspect("tensor", what, trace=LeakTrace("global `net`", links), fix=NUMBER)


def test_a_tensor_that_a_hook_holds_is_freed_by_removing_the_hook():
    advice = "keep the handle that registering a hook returns and call its .remove() after use"

    assert said(fitting(held(".fc1", "._forward_hooks", "[x]", "closure cell mask"))) == advice


@pytest.mark.parametrize("where", ["._parameters", "._buffers", "._modules", ".param_groups"])
def test_what_is_registered_again_and_again_is_to_be_registered_once(where):
    assert said(fitting(held(".table", where, "[x]"))) == REGISTERED


def test_so_is_a_parameter_that_is_an_attribute():
    suspect = held(".table", ".user_7", what="Parameter (256) float32", growing=".user_7")

    assert said(fitting(suspect)) == REGISTERED


def test_so_is_a_module_in_a_list_of_modules():
    suspect = held(".heads", "[x]", what="Parameter (2x8) float32", table="ModuleList")

    assert said(fitting(suspect)) == REGISTERED


def test_of_a_list_of_models_a_few_are_to_be_kept():
    assert said(fitting(held(".seen", "[x]", what="Parameter (256) float32"))) == (
        "parameters are as large as a model: keep a bounded number of them, or write them to disk"
    )


def test_what_pyplot_keeps_is_to_be_closed():
    figures = replace(
        held(".figs", "[x]"), kind="object", holder=held_by("class attribute `Gcf.figs`")
    )

    assert said(fitting(figures)) == (
        "close each figure when it has been saved or shown, plt.close(figure): pyplot keeps it "
        "until then"
    )


def test_what_nothing_is_known_of_is_to_be_looked_for_in_stages():
    assert said(fitting(Suspect("graph", ""))) == (
        "no line and no holder was found: run `leakcheck isolate` on the program, which says "
        "whether data, the forward pass, backward or logging makes it"
    )


def test_what_is_held_elsewhere_keeps_its_advice():
    assert said(fitting(held(".table", ".seen", "[x]"))) == said(NUMBER)
    assert said(fitting(Suspect("tensor", "", fix=NUMBER))) == said(NUMBER)


def kept(holder: str, *edges: str) -> Suspect:
    """A graph that is kept by what grows at the first edge."""
    links = tuple(Link(edge, "", 0, suspect=edge == "[x]") for edge in edges)
    trace = LeakTrace("global `kept`", links)
    return Suspect(
        "graph",
        "Tensor",
        fix=Reason.of("write", code="kept.append(it.item())"),
        holder=held_by(holder),
        trace=trace,
    )


@pytest.mark.parametrize(
    ("edges", "fix"),
    [
        (("[x]",), "kept.append(it.item())"),
        (
            ("[x]", ".q_value"),
            "what is kept has a graph inside (.q_value): detach that, or clear Buffer.kept after "
            "its use",
        ),
        (
            ("[x]", "in a KeyError", ".tb_frame", "local loss"),
            "keep str(error), or error.with_traceback(None): a traceback keeps the locals of its "
            "frames",
        ),
    ],
)
def test_what_holds_the_graph_deeper_inside_has_no_item_to_take(edges, fix):
    assert said(fitting(kept("attribute `Buffer.kept`, from global `buffer`", *edges))) == fix


@pytest.mark.parametrize(
    ("code", "edges", "fix"),
    [
        ("kept += losses.item()", ("[x]",), "kept += [each.item() for each in losses]"),
        (
            "kept['a'] += losses.detach()",
            ('["a"]', "[x]"),
            "kept['a'] += [each.detach() for each in losses]",
        ),
        ("kept[0] += loss.item()", ("[x]",), "kept[0] += loss.item()"),
        ("kept += (a + b).item()", (), "kept += (a + b).item()"),
    ],
)
def test_a_list_that_is_added_to_a_list_is_cut_in_each_of_its_elements(code, edges, fix):
    suspect = replace(kept("global `kept`", *edges), fix=Reason.of("write", code=code))

    assert said(fitting(suspect)) == fix


def test_what_a_policy_gradient_needs_is_not_made_a_number():
    fix = said(fix_for("policy.saved.append(dist.log_prob(action))", "graph", scalar=True))

    assert fix == ("if a later backward needs them, empty policy.saved after it; else keep numbers")


def test_a_part_of_the_graph_is_not_detached():
    assert said(fix_for("DEBUG.append(ctx)", "graph", scalar=None)) == (
        "what is kept is a part of the graph itself, as the ctx of an autograd.Function is: "
        "keep numbers, or detached tensors"
    )


def test_what_each_step_keeps_one_of_is_not_carried_over():
    links = (Link("[x]", "Span"), Link(".attrs", "dict"), Link('["loss"]', "Tensor", suspect=True))
    carried = Reason.of("detach-carried", target="loss")
    suspect = Suspect("graph", "Tensor", fix=carried, holder=held_by("attribute `Span.attrs`"))
    several = replace(suspect, trace=LeakTrace("context variable `spans`", links))
    one = replace(suspect, trace=LeakTrace("local `h` in main()", links[1:]))

    assert fitting(one) == carried
    assert said(fitting(several)) == (
        'what is kept has a graph inside (["loss"]): detach that, or clear Span.attrs after its use'
    )


@pytest.mark.parametrize(
    ("keeper", "advice"),
    [
        ([Link(".state", "defaultdict"), Link("[x]", "dict")], "an optimizer keeps state as large"),
        ([Link(".param_groups", "list"), Link("[x]", "dict")], "an optimizer keeps state as large"),
        ([Link("suspended episode()", "Tensor")], "a suspended generator keeps its locals"),
        ([Link("in a traceback", "traceback"), Link(".tb_frame", "frame")], "keep str(error)"),
    ],
)
def test_what_keeps_more_than_its_name_says_has_advice_of_its_own(keeper, advice):
    links = (Link(".kept", "list"), Link("[x]", "generator", suspect=True), *keeper)
    tensors = Suspect("tensor", "Tensor", trace=LeakTrace("global `agent`", links), fix=NUMBER)

    assert said(fitting(tensors)).startswith(advice)


def test_a_loop_that_is_itself_a_generator_is_not_what_keeps():
    links = (Link("suspended steps()", "list"), Link("[x]", "Tensor", suspect=True))
    tensors = Suspect("tensor", "Tensor", trace=LeakTrace("local `it`", links), fix=NUMBER)

    assert said(fitting(tensors)) == said(NUMBER)


def test_what_finalize_keeps_is_not_to_be_bound_to_the_object():
    links = (Link("[x]", "_Info", suspect=True), Link(".func", "method"))
    root = "class attribute `finalize._registry`"
    batches = Suspect(
        "tensor", "Tensor", holder=held_by(root), trace=LeakTrace(root, links), fix=NUMBER
    )

    assert said(fitting(batches)).startswith("weakref.finalize keeps its function and arguments")


@pytest.mark.parametrize(
    ("root", "links", "holder", "advice"),
    [
        (
            "functions registered with `atexit`",
            (),
            "functions registered with `atexit`",
            "what is registered with atexit stays",
        ),
        (
            "context variable `scope`",
            (Link("[x]", "Tensor (2) float32", suspect=True),),
            "context variable `scope`",
            "a context variable keeps its value until it is set back: keep the token that "
            "scope.set() returns",
        ),
        (
            "global `__warningregistry__`",
            (Link("[x]", "bool", suspect=True),),
            "global `__warningregistry__`",
            "each text that was warned of is remembered",
        ),
        (
            "local `bus` in main()",
            (Link(".pending", "set"), Link("[x]", "Task", suspect=True)),
            "attribute `Bus.pending`, from local `bus` in main()",
            "a task or future keeps its result and its arguments: take each out of Bus.pending",
        ),
        (
            "global `log`",
            (Link(".handlers", "list"), Link("[x]", "StreamHandler", suspect=True)),
            "attribute `Logger.handlers`, from global `log`",
            "take each handler back with .removeHandler()",
        ),
        (
            "local `opt` in main()",
            (Link(".state", "defaultdict"), Link("[x]", "dict", suspect=True)),
            f"attribute `{SGD.__name__}.state`, from local `opt` in main()",
            "an optimizer keeps the state of every parameter that it was given",
        ),
    ],
)
def test_what_is_registered_or_awaited_is_to_be_given_back(root, links, holder, advice):
    tensors = Suspect(
        "tensor", "Tensor", trace=LeakTrace(root, links), holder=held_by(holder), fix=NUMBER
    )

    assert said(fitting(tensors)).startswith(advice)


def test_a_state_that_is_no_optimizer_s_is_not_told_of_parameters():
    links = (Link(".state", "defaultdict"), Link("[x]", "dict", suspect=True))
    holder = held_by("attribute `Sessions.state`, from local `store` in main()")
    trace = LeakTrace("local `store` in main()", links)
    suspect = Suspect("tensor", "Tensor", trace=trace, holder=holder, fix=NUMBER)

    assert fitting(suspect) == NUMBER


def test_a_hook_that_adds_to_what_grows_need_not_be_removed():
    adding = "t.register_hook(lambda g: GRADS.append(g.clone()))"
    kept = "self.handles.append(layer.register_forward_hook(note))"

    assert said(fix_for(adding, "tensor", scalar=False)) == (
        "keep numbers of it (.item(), .mean().item()) or a bounded window, or move it to disk"
    )
    assert said(fix_for(kept, "tensor", scalar=False)).startswith("keep the handle")


OLD_KEYS = (
    "each new key or element stays: delete it when it has been used, or keep the newest few only"
)


@pytest.mark.parametrize("kind", ["tensor", "object"])
@pytest.mark.parametrize(
    ("line", "growth", "fix"),
    [
        ("cache[step] = out.detach()", KEYED, OLD_KEYS),
        (
            "seen = numpy.append(seen, losses)",
            LARGER,
            "each step makes it larger: write out what it holds and begin anew every so often, or "
            "keep the newest part only",
        ),
        (
            "waiting.put(out.detach())",
            QUEUED,
            "nothing takes out as much as is put in: read the queue (.get()), or put nothing there "
            "that nobody reads",
        ),
        (
            "layer.register_forward_hook(note)",
            KEYED,
            "keep the handle that register_forward_hook() returns and call its .remove() after use",
        ),
    ],
)
def test_what_grows_otherwise_than_a_list_is_told_what_fits_it(kind, line, growth, fix):
    assert said(by_growth(fix_for(line, kind, scalar=False), growth)) == fix


def test_what_grows_as_a_list_does_and_graphs_keep_their_advice():
    line = "cache[step] = loss"

    assert by_growth(NUMBER, "") == NUMBER
    assert said(by_growth(fix_for(line, "graph", scalar=True), KEYED)) == f"{line}.item()"


def test_an_lru_cache_is_to_be_limited():
    suspect = replace(held("lru_cache of table()", "[x]"), holder=held_by("lru_cache of table()"))

    assert said(fitting(suspect)) == (
        "each new argument is one more entry: limit the cache (maxsize=...), or ask it for what "
        "comes again, which a tensor or a number made anew never does"
    )


@pytest.mark.parametrize(
    ("code", "without"),
    [
        ("losses.append(loss.item())", True),
        ("losses.append((step, loss.detach()))", False),  # a tuple may have more in it
        ("self.kept.add(out.cpu().numpy())", True),
        ("losses.append(loss)", False),
        ("losses.append(criterion(out, y))", False),
        ("total = total + loss.item()", False),
    ],
)
def test_a_line_that_adds_a_number_adds_no_graph(code, without):
    assert adds_without_graph(code) is without
