"""The words for fixes: what to do about a leak, one sentence a code, filled with its fields."""

ADVICE = {
    "write": "{code}",
    "as-the-rule-says": "{help}",
    "detach-carried": "detach what is carried over: {target} = {target}.detach()",
    "detach-inside": "what is kept has a graph inside ({inside}): detach that, or clear {holder} "
    "after its use",
    "empty-after-backward": "if a later backward needs them, empty {container} after it; else keep "
    "numbers",
    "keep-no-part-of-the-graph": "what is kept is a part of the graph itself, as the ctx of an "
    "autograd.Function is: keep numbers, or detached tensors",
    "no-create-graph": "backward(create_graph=True) ties each parameter to its gradient in C++: "
    "use torch.autograd.grad(..., create_graph=True), or set .grad = None after use",
    "cut-the-hook-s-cycle": "a hook that leads to a tensor of the graph it is on keeps that graph "
    "for ever, and no collection frees it: give it a weakref.ref of its object, or call .remove() "
    "on the handle",
    "keep-numbers": "keep numbers: .item() for a scalar, .detach() for a tensor",
    "keep-a-number-or-window": "keep numbers of it (.item(), .mean().item()) or a bounded "
    "window, or move it to disk",
    "copy-the-view": "keep a copy (.clone() of a tensor, .copy() of an array): each shows a part "
    "of {kept_bytes:B} that it keeps; and keep no more than a bounded window",
    "bound-the-container": "bound the container (deque(maxlen=...)) or clear it when it has been "
    "used",
    "drop-old-keys": "each new key or element stays: delete it when it has been used, or keep the "
    "newest few only",
    "read-the-queue": "nothing takes out as much as is put in: read the queue (.get()), or put "
    "nothing there that nobody reads",
    "begin-anew": "each step makes it larger: write out what it holds and begin anew every so "
    "often, or keep the newest part only",
    "call-what-empties": "call .{method}() when what is kept has been used: nothing does; or "
    "keep numbers (.item())",
    "limit-the-memo": "each new argument is one more entry: limit the cache (maxsize=...), or ask "
    "it for what comes again, which a tensor or a number made anew never does",
    "remove-hook": "keep the handle that {method} returns and call its .remove() after use",
    "register-once": "what is registered in a module or an optimizer stays there: register it "
    "once, or take it out (del) after use",
    "keep-few-models": "parameters are as large as a model: keep a bounded number of them, or "
    "write them to disk",
    "drop-the-optimizer": "an optimizer keeps state as large as its parameters: drop the old one, "
    "or keep one and empty it with .state.clear()",
    "state-of-parameters-in-use": "an optimizer keeps the state of every parameter that it was "
    "given: make a new one of those in use, or take the others out of .param_groups and .state",
    "remove-handlers": "take each handler back with .removeHandler() after use, or add one once",
    "drop-the-traceback": "keep str(error), or error.with_traceback(None): a traceback keeps the "
    "locals of its frames",
    "end-what-is-suspended": "a suspended {what} keeps its locals: let it end, or .close() it, and "
    "keep what it was made of",
    "drop-what-is-done": "a task or future keeps its result and its arguments: take each out of "
    "{container} when it is done, with .add_done_callback() or when its result was read",
    "unregister-from-exit": "what is registered with atexit stays until the program ends: register "
    "one function once, or take each out with atexit.unregister() when it has been called",
    "unbind-finalizer": "weakref.finalize keeps its function and arguments until the object goes: "
    "register it once, or .detach() it after use, and give it none that refer to the object, as a "
    "bound method does",
    "ignore-warnings": "each text that was warned of is remembered: keep numbers out of it, or "
    "have a filter ignore it",
    "reset-the-variable": "a context variable keeps its value until it is set back: keep the token "
    "that {name}.set() returns and call {name}.reset(token) after use",
    "look-outside": "look for what keeps it outside Python's view: a hook on a tensor whose "
    "function reaches that tensor, a function registered with atexit or in C++, a branch of "
    "itertools.tee that nobody reads, or a variable of another thread",
    "drop-in-thread": "see what the variables of {function} keep, and drop each thing after use",
    "look-which-part": "no line and no holder was found: run `leakcheck isolate` on the program, "
    "which says whether data, the forward pass, backward or logging makes it",
    "compile-once": "torch.compile keeps what it makes of each new shape or number: compile once, "
    "outside of the loop, let sizes vary (dynamic=True, torch._dynamo.mark_dynamic), and leave "
    "torch._dynamo.config.recompile_limit as low as it is by default",
    "end-threads": "let each thread end (a stop flag and .join(), .close() of what began it), or "
    "use a pool of a fixed size",
    "close-each": "close each when it has been used: a with block, or .close()",
    "close-each-figure": "close each figure when it has been saved or shown, plt.close(figure): "
    "pyplot keeps it until then",
    "unlink-each": "unlink each block when nobody needs it any more: .close(), then .unlink()",
    "wait-for-children": "wait for each child to end (.wait() or .join()), or use a pool of a "
    "fixed size",
}
