"""What a model gives back beside its loss: counts and accuracies have no graph to keep."""

from __future__ import annotations

import re

# argmax, comparison and len() end a graph; their results go by these names
_COUNTED = re.compile(
    r"(^|_)(n|nums?|number|nb|counts?|counter|sizes?|samples|bsz|len|lengths?|correct|hits?|"
    r"acc|accs|accuracy|accuracies|top[15]|precision|recall|f1|iou|miou|bleu|wer|cer|auc|"
    r"idx|idxs|index|indexes|indices|ids|steps?|masks?|ntokens|nsentences|pred_labels?)(_|\d*$)"
)


def is_counted(name: object) -> bool:
    """Whether a name says that its value was counted: "num_samples", "n", "train_acc"."""
    return isinstance(name, str) and _COUNTED.search(name.rpartition(".")[2].lower()) is not None
