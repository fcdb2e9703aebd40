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


def in_chunks(images, size, process):
    chunks = [images[i : i + size] for i in range(0, len(images), size)]  # leak: view-outlives-del
    results = [process(chunk) for chunk in chunks]
    images.clear()
    return torch.cat(results)


def in_chunks_of_numbers(images, size, process):
    sizes = [image.shape for image in images]
    results = [process(image, size) for image in images]
    images.clear()
    return torch.cat(results), sizes


def taken_from_a_list(work):
    results = list(map(work, range(8)))  # leak: view-outlives-del
    kept = []
    for samples in results:
        for sample in samples:
            kept.append(sample)
    print(len(kept))
    del kept
    gc.collect()


def both_deleted(work):
    results = list(map(work, range(8)))
    kept = []
    for samples in results:
        for sample in samples:
            kept.append(sample)
    del kept, results
    gc.collect()


def taken_from_a_loader(loader):
    kept = []
    for sample in loader:
        kept.append(sample)
    del kept
    gc.collect()


def some_names(names):
    kept = []
    for name in names:
        kept.append(name)
    first = kept[:4]  # of a list, whose entries are text
    del kept
    gc.collect()
    return first


def stacked_at_once(buffer):
    part = buffer[2:8]
    part = torch.stack(tuple(part))
    del buffer
    gc.collect()
    return part


def sent_in_chunks(message, size):
    data = message.SerializeToString()
    for start in range(0, len(data), size):
        chunk = data[start : start + size]  # of bytes a copy
        yield chunk
    del data
    gc.collect()
