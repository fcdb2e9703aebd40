"""Near misses are unmarked."""

import gc

import torch


def sliced(buffer):
    head = buffer[:10]  # leak: view-outlives-del
    print(head.sum())
    del buffer
    torch.cuda.empty_cache()


def an_entry(checkpoint):
    step = checkpoint["step"]
    del checkpoint
    gc.collect()
    return step


def rebound(buffer):
    head = buffer[:10]
    head = head.clone()
    del buffer
    head = None
    gc.collect()
    return head


def uncollected(buffer):
    head = buffer[:10]
    del buffer
    return head


def copied(buffer):
    head = torch.clone(buffer[:10])
    del buffer
    gc.collect()
    return head
