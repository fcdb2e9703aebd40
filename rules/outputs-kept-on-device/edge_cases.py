"""Near misses are unmarked."""

import torch
import torch.nn.functional as F
from pytorch_lightning import Callback
from tqdm import tqdm


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


class Collector(Callback):
    def __init__(self):
        self.outputs, self.parts, self.moved, self.first, self.sizes = [], {}, [], [], []

    def on_predict_batch_end(self, trainer, module, outputs, batch, batch_idx):
        result = outputs
        if self.transform:
            result = module.transform(outputs)
        self.outputs.append(result)  # leak: outputs-kept-on-device
        self.parts["x"].append(batch[0])  # leak: outputs-kept-on-device
        self.moved.append(outputs.cpu())
        small = outputs.cpu()
        self.moved.append(small)
        self.sizes.append(len(batch))
        if batch_idx == 0:
            self.first.append(batch)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.outputs.append(outputs)


class Encoder(torch.nn.Module):
    def encode(self, texts, batch_size):
        found, moved = [], []
        for start in range(0, len(texts), batch_size):
            with torch.no_grad():
                embeddings = self.forward(texts[start : start + batch_size])["embeddings"]
            found.extend(embeddings)  # leak: outputs-kept-on-device
            moved.extend(embeddings.cpu())
        found = [found[place] for place in range(len(texts))]
        return found, moved

    def layers(self, image, depth):
        kept = []
        for _ in range(0, depth, 2):
            with torch.no_grad():
                kept.append(self.forward(image))  # a few layers, and no batches
        return kept

    def encode_all(self, dataloader):
        found = []
        batches = tqdm(dataloader)
        for batch in batches:
            with torch.no_grad():
                found.append(self.forward(batch))  # leak: outputs-kept-on-device
        return found


class Neighbours:
    def remember(self, loader):
        features, moved, returned = [], [], []
        with torch.no_grad():
            for batch in loader:
                features.append(self.model(batch))  # a bank that is wanted on the device
                moved.append(self.model(batch))  # leak: outputs-kept-on-device
                returned.append(self.model(batch))  # leak: outputs-kept-on-device
        self.bank = torch.cat(features).t()
        known = torch.cat(moved)
        self.known = known.cpu()
        result = torch.cat(returned)
        return result


class Moving(LightningModule):
    def validation_step(self, batch, batch_idx):
        return self.general(batch)

    def general(self, batch):
        return self.model(batch).detach().to(device="cpu")

    def on_validation_batch_end(self, outputs, batch, batch_idx):
        self.outputs.append(outputs)


class Leaving(LightningModule):
    def validation_step(self, batch, batch_idx):
        return self.model(batch)

    def on_validation_batch_end(self, outputs, batch, batch_idx):
        self.outputs.append(outputs)  # leak: outputs-kept-on-device


class Writer(BasePredictionWriter):
    def write_on_batch_end(self, trainer, module, prediction, indices, batch, batch_idx):
        embeddings, names = prediction
        self.embeddings.append(embeddings.cpu())
        self.names.extend(names)


class LeavingWriter(BasePredictionWriter):
    def write_on_batch_end(self, trainer, module, prediction, indices, batch, batch_idx):
        embeddings, names = prediction
        self.embeddings.append(embeddings)  # leak: outputs-kept-on-device
