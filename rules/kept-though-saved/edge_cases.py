"""Near misses are unmarked."""

import pickle

import torch


def shards(parts, build, folder, results):
    built = []
    for part in parts:
        shard = build(part)
        torch.save(shard, folder / part)
        built.append(shard)  # leak: kept-though-saved
        results.append(part)
    return len(built)


def computed_once(parts, build, folder):
    """What is returned is what the function is called for, and the files are its copy."""
    built = []
    for part in parts:
        shard = build(part)
        torch.save(shard, folder / part)
        built.append(shard)
    return {"built": built, "number": len(parts)}


def paths(parts, build, folder):
    built = []
    for part in parts:
        shard = build(part)
        with open(folder / part, "wb") as file:
            pickle.dump(shard, file)
        built.append(folder / part)
    return built


def once(parts, build, folder):
    built = []
    for part in parts:
        shard = build(part)
        built.append(shard)
    torch.save(built, folder)
    return built


def the_same(model, epochs, folder, history):
    for epoch in epochs:
        torch.save(model, folder / epoch)
        history.append(model)
