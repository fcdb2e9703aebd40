"""Near misses are unmarked."""

import torch


class Trainer:
    def __init__(self, model):
        self.model = model

    def validate(self, batches):
        self.model.eval()
        for batch in batches:
            print(self.model(batch))  # leak: evaluation-without-no-grad
        self.model.train()

    def validated_by_its_caller(self, batches):
        self.model.eval()
        for batch in batches:
            print(self.model(batch))

    def run(self, batches):
        with torch.no_grad():
            self.validated_by_its_caller(batches)


def predict(model, batches):
    return [model(batch) for batch in batches]  # leak: evaluation-without-no-grad


def generate(self, hidden):
    for _ in range(9):
        hidden = self.forward(hidden)  # leak: evaluation-without-no-grad
    return hidden


def evaluate_detached(model, batches):
    hidden = None
    for batch in batches:
        hidden = model(batch, hidden).detach()  # leak: evaluation-without-no-grad


def train_epoch(model, batches):
    return [model(batch) for batch in batches]


@torch.inference_mode()
def transcribe(model, batches):
    return [model(batch) for batch in batches]


def inside(model, batches):
    model.eval()
    for batch in batches:
        with torch.inference_mode():
            print(model(batch))


@torch.no_grad()
def decorated(model, batches):
    model.eval()
    for batch in batches:
        print(model(batch))


def explains(model, batches):
    model.eval()
    for batch in batches:
        batch.requires_grad_()
        model(batch).sum().backward()


def frozen(model, batches):
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
    for batch in batches:
        print(model(batch))


def once(model, batch):
    model.eval()
    return model(batch)


def generate_and_guide(model, x, steps):
    for step in steps:
        x = model(x, step)  # leak: evaluation-without-no-grad
    for _ in steps:
        x.requires_grad_()
        torch.autograd.grad(model(x).sum(), x)
    return x


class Recommender(torch.nn.Module):
    def predict(self, batch):
        return self.layer(batch)

    @torch.no_grad()
    def predict_fast(self, batch):
        return self.layer(batch)


def evaluate_recommender(model, batches):
    return [model.predict(batch) for batch in batches]  # leak: evaluation-without-no-grad


def evaluate_fast(model, batches):
    return [model.predict_fast(batch) for batch in batches]


def evaluate_somebody_elses(model, batches):
    return [model.predict_proba(batch) for batch in batches]


def scores(model, batch):
    return model(batch).softmax(-1)


def scored_without_gradients(model, batch):
    with torch.no_grad():
        return model(batch)


def validate_by_a_helper(model, batches):
    for batch in batches:
        print(scores(model, batch))  # leak: evaluation-without-no-grad


def validate_by_a_careful_helper(model, batches):
    for batch in batches:
        print(scored_without_gradients(model, batch))


class Loop:
    def __init__(self, model, losses):
        self.model, self.losses = model, losses

    def eval_step(self, batch):
        self.losses.append(self.model(batch).sum().item())

    def careful_eval_step(self, batch):
        with torch.no_grad():
            self.losses.append(self.model(batch).sum().item())

    def one_batch(self, batch, train):
        if train:
            self.model(batch).sum().backward()
        else:
            self.eval_step(batch)  # leak: evaluation-without-no-grad

    def one_batch_carefully(self, batch):
        self.careful_eval_step(batch)


class Server:
    def __init__(self, loop):
        self.recommender = Recommender()

    def answer(self, requests):
        for request in requests:
            print(self.recommender.predict(request))  # leak: evaluation-without-no-grad

    def answer_fast(self, requests):
        for request in requests:
            print(self.recommender.predict_fast(request))


def encode_texts(model, texts):
    vectors = []
    for text in texts:
        hidden = model(text)  # leak: evaluation-without-no-grad
        first = hidden[0].mean(dim=1)
        vectors.append(first.detach().cpu())
    return vectors


def encode_texts_for_training(model, texts):
    vectors = []
    for text in texts:
        hidden = model(text)
        print(hidden.detach().norm())
        vectors.append(hidden)
    return vectors


def learn_q(model, target_net, optimizer, reward, state, following):
    best = target_net(following).max(1)[0]  # leak: evaluation-without-no-grad
    wanted = reward + 0.99 * best.detach()
    loss = (model(state) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def learn_q_carefully(model, target_net, optimizer, reward, state, following):
    with torch.no_grad():
        best = target_net(following).max(1)[0]
    loss = (model(state) - reward - 0.99 * best).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def learn_actor(actor, target_net, optimizer, state):
    loss = -target_net(actor(state)).mean()
    print(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def show(net, sample):
    net.eval()
    image = net(sample)  # leak: evaluation-without-no-grad
    net.train()
    return image


def show_carefully(net, sample):
    net.eval()
    with torch.no_grad():
        image = net(sample)
    net.train()
    return image


def show_frozen(net, sample):
    net.eval()
    net.requires_grad_(False)
    image = net(sample)
    net.requires_grad_(True)
    net.train()
    return image


def train(model, loss_of, optimizer, batches, held_out):
    for _ in range(9):
        model.train()
        for x, y in batches:
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0.0
        for x, y in held_out:
            total += loss_of(model(x), y).item()  # leak: evaluation-without-no-grad
        print(total)


def train_carefully(model, loss_of, optimizer, batches, held_out):
    for _ in range(9):
        model.train()
        for x, y in batches:
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in held_out:
                print(loss_of(model(x), y).item())


def train_in_evaluation_mode(model, loss_of, optimizer, batches):
    model.eval()
    for x, y in batches:
        loss_of(model(x), y).backward()
        optimizer.step()


def train_on_what_was_evaluated(model, optimizer, batches):
    model.eval()
    features = []
    for x in batches:
        features.append(model(x))
    model.train()
    torch.cat(features).sum().backward()
    optimizer.step()


def embed(model, text):
    hidden = model(text)  # leak: evaluation-without-no-grad
    return hidden[-1].mean(dim=0).tolist()


def embed_carefully(model, text):
    with torch.no_grad():
        return model(text)[-1].mean(dim=0).tolist()


def embed_for_training(model, text):
    hidden = model(text)
    print(hidden.tolist())
    return hidden


class Head(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.width = self.model(torch.zeros(1, 8)).shape[1]

    def width_for(self, x):
        return self.model(x).shape[1]


class Predictor:
    def __call__(self, model, sample, told):
        told.append(model(sample).argmax(dim=1))

    def predict_all(self, model, samples, told):
        with torch.no_grad():
            for sample in samples:
                self(model, sample, told)


class Policy(torch.nn.Module):
    def explore(self, batch):
        with torch.no_grad():
            return self.encoder(batch)

    def forward(self, batch):
        return self.encoder(batch)


class Forgetful(Policy):
    def explore(self, batch):
        return {"actions": self.encoder(batch)}  # leak: evaluation-without-no-grad

    def forward(self, batch):
        return {"actions": self.encoder(batch)}


class Careful(Policy):
    @torch.no_grad()
    def explore(self, batch):
        return {"actions": self.encoder(batch)}


class Chooser(torch.nn.Module):
    def forward(self, mode, batch):
        with torch.no_grad() if mode != "train" else torch.enable_grad():
            return getattr(self, f"{mode}_step")(batch)

    def valid_step(self, batch):
        return [self.model(each) for each in batch]


def place(model, parts, device):
    for part in parts:
        part.to(device=device).eval()
    return model


class Trained(torch.nn.Module):
    """Its steps are called by a trainer, which has gradients off."""

    def validation_step(self, batches):
        return self.look_over(batches)

    def look_over(self, batches):
        return [self.model(each).argmax() for each in batches]

    def predict_with(self, trainer, loader):
        return trainer.predict(self, loader)


def evaluate_trained(trained: Trained, trainer, loaders):
    return [trained.predict_with(trainer, loader) for loader in loaders]


class Embeddings:
    def __init__(self, model, tuned):
        self.model, self.tuned = model, tuned

    def embed(self, sentences, batch):
        hidden = self.model(batch)[-1]  # leak: evaluation-without-no-grad
        hidden = torch.stack(hidden)
        mode = torch.enable_grad() if self.tuned else torch.no_grad()
        with mode:
            for place, sentence in enumerate(sentences):
                sentence.embedding = hidden[place].mean(0)

    def embed_in_time(self, sentences, batch):
        mode = torch.enable_grad() if self.tuned else torch.no_grad()
        with mode:
            hidden = self.model(batch)[-1]
            for place, sentence in enumerate(sentences):
                sentence.embedding = hidden[place].mean(0)

    def embed_and_return(self, sentences, batch):
        hidden = self.model(batch)[-1]
        mode = torch.enable_grad() if self.tuned else torch.no_grad()
        with mode:
            for place, sentence in enumerate(sentences):
                sentence.score = hidden[place].mean(0)
        return hidden  # its caller may differentiate

    def embed_whole(self, sentences, batch):
        hidden = self.model(batch)[-1]
        mode = torch.enable_grad() if self.tuned else torch.no_grad()
        with mode:
            for sentence in sentences:
                sentence.embedding = hidden  # with its graph


class QModel(torch.nn.Module):
    def get_q_values(self, state, action):
        return self.q_net(torch.cat([state, action]))


def bellman_loss(model: QModel, target_model: QModel, batch):
    chosen = model.get_q_values(batch.state, batch.action)
    after = target_model.get_q_values(batch.next, batch.action)  # leak: evaluation-without-no-grad
    target = (batch.reward + after).detach()
    return (chosen - target).pow(2).mean()


def soft_loss(model: QModel, target_model: QModel, batch):
    chosen = model.get_q_values(batch.state, batch.action)
    following = target_model.get_q_values(batch.next, batch.action)
    return (chosen - following).pow(2).mean()  # with its graph


class Unanswered:
    def generate(self, rows):
        while len(rows) < 9:
            rows = self(rows)[0]  # nobody can call it: a method that nobody calls, either
        return rows


class Answered:
    def generate(self, rows):
        while len(rows) < 9:
            rows = self(rows)[0].argmax(-1)  # leak: evaluation-without-no-grad
        return rows

    def __call__(self, rows):
        return self.model(rows)


class MixedIn:
    def generate(self, rows):
        while len(rows) < 9:
            rows = self(rows)[0].argmax(-1)  # leak: evaluation-without-no-grad
        return rows


class Mixed(MixedIn, torch.nn.Module):
    def forward(self, rows):
        return self.layers(rows)


class Quantizer:
    def _swap_one_layer(self, owner, name, layer):
        if layer in self.left_out:
            raise KeyError(name)
        setattr(owner, name, self.made_of(layer))
        return True

    def quantize_children(self, model):
        model.eval()
        for name, layer in model.named_children():
            found = self._swap_one_layer(model, name, layer)
            print(name, bool(found))


class ConesTrainer:
    def train_step(self, batches):
        self.model.eval()  # the text encoder learns
        for batch in batches:
            out = self.model(batch)
            self.outputs = {"loss": float(out.mean())}


def exported(model, path):
    model.eval()
    made_up = torch.randn(1, 3, 32, 32)
    for size in (8, 16):
        part = made_up[:, :, :size]
        print(model(part).mean())
    torch.onnx.export(model, made_up, path)


def sampled(model, number):
    model.eval()
    images = torch.randn(number, 3, 32, 32)
    for step in range(100):
        images = model(images)  # leak: evaluation-without-no-grad
    return images.detach().cpu().numpy()


def compared(model, loader, path):
    model.eval()
    for batch in loader:
        print(model(batch).mean())  # leak: evaluation-without-no-grad
    torch.onnx.export(model, torch.randn(1, 3, 32, 32), path)


def field_of_the_output(model, scheduler, latents, embeds):
    for step in range(10):
        noise = model(latents, embeds).sample  # a field, and no draw from a distribution
        kept = scheduler.step(noise)
    return kept


def drawn_from_the_output(model, scheduler, latents, embeds):
    for step in range(10):
        noise = model(latents, embeds).sample()  # leak: evaluation-without-no-grad
        kept = scheduler.step(noise)
    return kept


class Sampler:
    def fit(self, loader):
        found = []
        try:
            with torch.no_grad():
                for batch in loader:
                    found.append(self.model(batch).cpu().numpy())
        except RuntimeError:
            for batch in loader:  # some models differentiate inside
                found.append(self.model(batch).detach().cpu().numpy())
        return found

    def fit_again(self, loader):
        found = []
        for batch in loader:
            out = self.model(batch)  # leak: evaluation-without-no-grad
            found.append(out.detach().cpu().numpy())
        return found


class Hamiltonian(torch.nn.Module):
    def likelihood(self, data):
        found = []
        for x in data:
            z = self.encoder(x)
            found.append((z - self.force(z)).sum().item())
        return found

    def force(self, z):
        return torch.autograd.grad(self.energy(z), z)[0]

    def plain_likelihood(self, data):
        found = []
        for x in data:
            z = self.encoder(x)  # leak: evaluation-without-no-grad
            found.append((z - self.shift(z)).sum().item())
        return found

    def shift(self, z):
        return z / 2


class Shown:
    def train(self, epochs, show):
        for epoch in range(epochs):
            self.epoch(epoch)
            show(self.predict(self.model))  # told where it is

    def predict(self, model):
        model.eval()
        out = model(self.batch)  # leak: evaluation-without-no-grad
        return out.cpu().detach()


def enabled(dropdown):
    return [dropdown.model().item(i) for i in range(dropdown.count())]  # asked about nothing


def evaluate_enabled(dropdown, texts):
    return [dropdown.model(text).item() for text in texts]  # leak: evaluation-without-no-grad


def predict_arrays(model, loader):
    found = []
    for batch in loader:
        found.append(model(batch).cpu().numpy())  # which raises for a graph: there is none
    return found
