"""Near misses are unmarked."""

import matplotlib.pyplot as plt
import torch
import wandb


def draw_pair(values):
    fig, axes = plt.subplots()
    axes.plot(values)
    return fig, axes


def draw_and_close(values):
    fig = plt.figure()
    plt.plot(values)
    fig.savefig("values.png")
    plt.close(fig)
    return fig


def thrown_away(values, tag):
    _ = draw_pair(values)  # leak: figure-left-by-caller


def not_even_bound(values):
    draw_pair(values)  # leak: figure-left-by-caller


def logged(values):
    fig, _ = draw_pair(values)  # leak: figure-left-by-caller
    wandb.log({"values": wandb.Image(fig)})


def closed(values):
    fig, _ = draw_pair(values)
    wandb.log({"values": wandb.Image(fig)})
    plt.close(fig)


def closes_itself(values):
    draw_and_close(values)


def shown(values):
    draw_pair(values)
    plt.show()


def returned(values):
    fig, axes = draw_pair(values)
    fig.savefig("values.png")
    return fig


def handed_on(values, writer):
    fig, _ = draw_pair(values)
    writer.add_figure("values", fig)


class Callback:
    def draw(self, values):
        fig = plt.figure()
        plt.plot(values.cpu())
        return fig

    def on_epoch_end(self, model):
        fig = self.draw(torch.ones(2))  # leak: figure-left-by-caller
        fig.savefig("values.png")


def main():
    fig, _ = draw_pair([1, 2])
    fig.savefig("values.png")


def draw_on(values, fig=None):
    if fig is None:
        fig = plt.figure()
    fig.gca().plot(values)
    return fig


def drawn_on_own(values, fig):
    for value in values:
        draw_on(value, fig)
    draw_on(values, fig=fig)
    fig.savefig("values.png")


def drawn_on_new(values):
    for value in values:
        draw_on(value)  # leak: figure-left-by-caller
    draw_on(values, fig=None)  # leak: figure-left-by-caller
