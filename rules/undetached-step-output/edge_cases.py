"""Near misses are unmarked."""

import torch.nn.functional as F
import lightning.pytorch as pl
import torch
from fairseq.criterions import FairseqCriterion


class Attached(FairseqCriterion):
    def forward(self, model, sample, reduce=True):
        loss = F.cross_entropy(model(sample["x"]), sample["y"])
        logging_output = {
            "loss": loss,  # leak: undetached-step-output
            "ntokens": sample["ntokens"],
        }
        return loss, sample["size"], logging_output


class Detached(FairseqCriterion):
    def forward(self, model, sample, reduce=True):
        loss = F.cross_entropy(model(sample["x"]), sample["y"])
        return loss, sample["size"], {"loss": loss.data, "ntokens": sample["ntokens"]}


class Reduced(FairseqCriterion):
    def forward(self, model, sample, reduce=True):
        loss = F.cross_entropy(model(sample["x"]), sample["y"], reduction="none")
        return loss, 1, {"loss": loss.item() if reduce else loss}


class Counted(FairseqCriterion):
    def forward(self, model, sample, reduce=True):
        outputs = self.task(model, sample)
        loss, number = outputs["loss"], outputs["loss_scalar"]  # by its name, a number
        logging_output = {"loss": number}
        return loss, 1, logging_output


class Variational(pl.LightningModule):
    def training_step(self, batch, index):
        loss = torch.Tensor([self.svi.step(*batch)])  # made of a number
        self.losses.append(loss)
        return loss
