"""Near misses are unmarked."""

import torch
import torch.nn.functional as F


@torch.inference_mode()
def evaluate(model, loader, device):
    outputs = []
    moved = []
    labels = []
    sums = []
    for images, target in loader:
        images = images.to(device)
        logits = model(images)
        outputs.append(logits)  # leak: outputs-kept-on-device
        moved.append(logits.cpu())
        labels.append(target)
        sums.append(logits.sum().item())
    return torch.cat(moved), labels, sums


@torch.no_grad()
def embed(model, dataloader):
    features = []
    probabilities = []
    losses = []
    for batch in dataloader:
        hidden = model.encode_image(batch)
        features.append(F.normalize(hidden, dim=-1))  # leak: outputs-kept-on-device
        probabilities.append(hidden.softmax(-1).numpy())
        losses.append(F.mse_loss(hidden, batch))
    return torch.cat(features), probabilities


def train(model, loader):
    kept = []
    for batch in loader:
        kept.append(model(batch))  # with gradients: another rule's matter
    return kept


@torch.no_grad()
def ensemble(models, batch):
    parts = []
    for model in models:
        parts.append(model(batch))  # no data set is walked through
    return torch.stack(parts)


def calibrate(layers, batches):
    outputs, kept = {}, {}
    for index, layer in enumerate(layers):
        with torch.no_grad():
            output = layer(batches)
        outputs[index] = output[0]  # leak: outputs-kept-on-device
        kept[index] = float(output.mean())
    return outputs, kept


@torch.no_grad()
def segments(self, latents):
    frames, moved = [], []
    while latents:
        decoded = self._decode_vae(latents.pop())
        frames.append(decoded)  # leak: outputs-kept-on-device
        moved.append(decoded.cpu())
    return torch.cat(frames), moved
