"""Near misses are unmarked."""

import torch


def moves(model, x, batch, device):
    labels = torch.zeros(8)
    labels.to(device)  # leak: result-thrown-away
    centroids = torch.randn(8, 8)
    centroids.cuda()  # leak: result-thrown-away
    embeddings = model(x)
    embeddings.cpu()  # leak: result-thrown-away
    model.to(device)
    model.encoder.cpu()
    batch.to(device)
    embeddings = embeddings.cpu()
    return embeddings.to(device), labels


def placed(rows, width, device):
    new_embedding = torch.nn.Embedding(rows, width)
    new_embedding.to(device)  # of a module, it changes the very one
    return new_embedding


class Backbone(torch.nn.Module):
    pass


def build_network():
    net = Backbone()
    return net


def restored(make_rows, weights, device):
    image_feats = build_network()
    image_feats.load(weights)
    image_feats.to(device)  # a module, as the function tells
    hidden = make_rows()
    hidden.to(device)  # leak: result-thrown-away
    return image_feats, hidden


def encoded(tokenizer, texts, target, device):
    input_ids = tokenizer(texts, return_tensors="pt")
    input_ids.to(device)  # a batch, which changes itself
    labels = tokenizer(texts, return_tensors="pt").input_ids
    labels.to(device)  # leak: result-thrown-away
    if isinstance(target, torch.nn.Linear):
        target.to(device)  # a module
    return input_ids, labels


def sent(target, device):
    if isinstance(target, torch.Tensor):
        target.to(device)  # leak: result-thrown-away
    return target


def of_its_own_type(query):
    mask = torch.zeros(4, dtype=query.dtype)
    mask.to(query.dtype)  # it is so already
    mask.to(query.device)  # leak: result-thrown-away
    return mask


def of_another_type_since(query, known):
    mask = torch.ones(4, dtype=query.dtype)
    mask = torch.logical_and(mask, known)
    mask.to(query.dtype)  # leak: result-thrown-away
    return mask


class OnTheHost(torch.nn.Module):
    def __init__(self, embeddings):
        super().__init__()
        self.word_embedding = torch.nn.Embedding(8, 4)
        self.known = embeddings

    def move(self, host):
        self.word_embedding.to(host)  # a module moves itself
        embeddings = torch.cat(self.known)
        embeddings.to(host)  # leak: result-thrown-away


def pack(target, labels, device):
    target.to(device)  # a layer, as its hook says
    if hasattr(target, "repack"):
        target.repack()
    labels.to(device)  # leak: result-thrown-away
