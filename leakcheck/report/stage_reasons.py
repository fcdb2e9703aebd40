"""The words for what runs of `isolate` and `compare` show, and for why they show nothing."""

from __future__ import annotations

_WHY_NOTHING = {
    "no-report": "no report came back",
    "told": "{said}",
    "program-failed": "the program failed: {why}",
    "fails-changed": "changed like this, the program failed: {why}",
    "left-with": "it left with status {status}",
    "no-steps-changed": "changed like this, it makes no steps",
    "no-loader": "no torch DataLoader feeds the steps",
    "no-torch": "the program does not use torch",
    "no-batch-read": "no torch DataLoader was read",
    "no-backward-called": "nothing called backward() or optimizer.step()",
    "nothing-logged": "nothing was called that is recognised as logging or a callback",
    "steady-too-short": "steady, but for {steps} steps only; the growth took {needed} to show",
    "something-else-grows": "something else grows than in the unchanged run",
    "grows-slower": "grows at {share_percent}% of the unchanged run's rate",
}
_OF_COMPARISONS = {
    "unclear-on-a-side": "{which} the change: {why}",
    "steady-in-fewer-steps": "{which} the change the program ended after {steps} steps, and "
    "to tell the leak takes {needed}",
    "runs-differ": "{which} the change, one run grows and another does not",
}
# which part of a program leaks
_WHERE = {
    "so-far": "interrupted; so far: {conclusion}",
    "isolated": "{where}; {leak}{at}",
    "nothing-to-isolate": "no leak in {steps:,} steps: there is nothing to isolate",
    "no-verdict-unchanged": "unclear: the unchanged run gives no verdict: {why}",
    "comes-with-data": "stops with a fixed batch: it comes with the data, in the loader or in what "
    "is kept",
    "logger-keeps": "stops without logging and callbacks: one of them keeps what it is given",
    "backward-needed": "leaks only with backward or the optimizer: gradients, hooks or their state "
    "are kept",
    "new-data-needed": "stops with a fixed batch: it grows with the data seen, as a cache keyed by "
    "data or a list of batches does",
    "logger-keeps-backward": "stops without logging and also without backward: a logger or "
    "callback keeps what backward or the optimizer makes",
    "logger-keeps-data": "stops without logging and also with a fixed batch: a logger or callback "
    "keeps what is new in the data",
    "backward-of-data": "stops without backward and also with a fixed batch: what backward makes "
    "is kept for each new batch",
    "all-needed": "stops in every stage: a logger or callback keeps what backward makes of new "
    "data",
    "loader-keeps": "leaks with data only: the loader, the dataset or its transforms keep what "
    "they make{more}",
    "stages-contradict": "unclear: the stages contradict each other (grows with data only, stops "
    "{taken}); run it again with more --steps",
    "pass-keeps": "{seen}: the forward pass or the loop keeps something of every step",
    "batch-work-keeps": "{seen}: the work on the batch keeps something of every step",
    "loader-unseen": "unclear: grows {taken: and } too; whether the loader leaks was not seen",
    "unclear-where": "unclear where: no stage told more than the unchanged run",
}
_PARTS = {
    "at": " ({path}:{line})",
    "held-by": "held by {holder}",
    "fixed-batch": "with a fixed batch",
    "no-backward": "without backward",
    "no-logging": "without logging",
    "stops-with-data": "stops with data only",
    "grows-too": "grows {taken: and }",
    "step-leaks-too": "; and the step leaks too, with a fixed batch",
    "part-of-growth": "; that is a part of the growth only ({missing})",
    "part-of-bytes": "{resource} {part:B} of {whole:B} a step",
    "part-of-count": "{resource} {part:n} of {whole:n} a step",
}
OF_STAGES = {**_WHY_NOTHING, **_OF_COMPARISONS, **_WHERE, **_PARTS}
