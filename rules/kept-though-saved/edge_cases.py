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
    return built


def computed_once(sequences, build, folder):
    """What is returned is what the function is called for, and the files are its copy."""
    built = []
    for sequence in sequences:
        features = build(sequence)
        torch.save(features, folder / sequence)
        built.append(features)
    return {"built": built, "number": len(sequences)}


def computed_for_nobody(sequences, build, folder):
    built = []
    for sequence in sequences:
        features = build(sequence)
        torch.save(features, folder / sequence)
        built.append(features)  # leak: kept-though-saved
    return len(built)


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
