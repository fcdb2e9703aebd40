"""Near misses are unmarked."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure


def closed(path):
    fig, ax = plt.subplots()
    fig.savefig(path)
    plt.close(fig)


def returned(path):
    fig = plt.figure()
    fig.savefig(path)
    return fig


def axes_returned(path):
    fig, ax = plt.subplots()
    fig.savefig(path)
    return ax


def handed_on(writer, step):
    fig = plt.figure()
    fig.canvas.draw()
    fig.savefig("x.png")
    writer.add_figure("loss", fig, step)


def shown():
    plt.figure()
    plt.savefig("x.png")
    plt.show()


def cleared_is_not_closed(path):
    plt.figure()  # leak: unclosed-figure
    plt.savefig(path)
    plt.clf()


def drawn_by_others(path, heat, draw):
    fig, ax = plt.subplots()  # leak: unclosed-figure
    draw(heat, ax=ax)
    plt.savefig(path)


def reused(path):
    plt.figure(1)
    plt.savefig(path)


def unregistered(path):
    fig = Figure()
    fig.savefig(path)


def left_to_the_caller(values):
    plt.figure()
    plt.plot(values)


def saved_or_shown(values, path):
    plt.figure()  # leak: unclosed-figure
    plt.plot(values)
    if path:
        plt.savefig(path)
    else:
        plt.show()


def saved_and_closed_or_shown(values, path):
    plt.figure()
    plt.plot(values)
    if path:
        plt.savefig(path)
        plt.close()
    else:
        plt.show()


def saved_then_shown(values, path):
    plt.figure()
    plt.plot(values)
    if path:
        plt.savefig(path)
    plt.show()


def described_or_shown(values, quiet):
    plt.figure()
    plt.plot(values)
    if quiet:
        print(values)
    else:
        plt.show()


class Board:
    def __init__(self, run):
        import wandb

        self.plt = plt
        self.wandb = wandb
        self.run = run

    def log(self, values):
        fig = self.plt.figure()  # leak: unclosed-figure
        self.plt.hist(values)
        fig = self.wandb.Image(fig)
        self.run.log({"values": fig})

    def log_and_close(self, values):
        fig = self.plt.figure()
        self.plt.hist(values)
        image = self.wandb.Image(fig)
        self.plt.close(fig)
        self.run.log({"values": image})

    def hand_on(self, values):
        fig = self.plt.figure()
        self.plt.savefig("values.png")
        self.run.log({"values": fig})


for epoch in range(3):
    fig = plt.figure()  # leak: unclosed-figure
    fig.savefig(f"{epoch}.png")


def saved_and_perhaps_shown(values, path, show=False):
    plt.figure()  # leak: unclosed-figure
    plt.plot(values)
    plt.savefig(path)
    if show:
        plt.show()


def saved_and_shown_or_closed(values, path, show=False):
    plt.figure()
    plt.plot(values)
    plt.savefig(path)
    if show:
        plt.show()
    plt.close()


def perhaps_shown(values, show=False):
    plt.figure()
    plt.plot(values)
    if show:
        plt.show()


def some_axes(values, path):
    fig, grid = plt.subplots(2, 2)
    flat = grid.flatten() if len(values) > 1 else [grid]
    fig.savefig(path)
    return flat[: len(values)]  # each knows its figure


def title_of_axes(values, path):
    fig, grid = plt.subplots(2, 2)  # leak: unclosed-figure
    flat = grid.flatten()
    fig.savefig(path)
    return flat[0].get_title()


def plot_all(path):
    plt.figure()  # called once, by the script below
    plt.savefig(path)


def plot_each(path):
    plt.figure()  # leak: unclosed-figure
    plt.savefig(path)


def main(paths):
    plot_all(paths[0])
    for path in paths:
        plot_each(path)


if __name__ == "__main__":
    main(["a.png", "b.png"])


def plot_twice(path):
    plt.figure()  # leak: unclosed-figure
    plt.savefig(path)


plot_twice("first.png")
plot_twice("second.png")
