"""An evaluation that another function, class or file begins, carries out, or switches off."""

import pytest

from leakcheck.static import registry
from leakcheck.static.engine import check_source
from leakcheck.static.project import Project


def told(source, code="LK406", **others):
    """The lines of `run.py` that a rule on evaluations flags, in a project with other files."""
    files = {"run.py": f"import torch\n{source}"}
    files |= {f"{name}.py": f"import torch\n{text}" for name, text in others.items()}
    rules = [rule for rule in registry.builtin_rules() if rule.code == code]
    findings = check_source(files["run.py"], "run.py", rules, Project(files))
    return [finding.context.strip() for finding in findings]


EVALUATE = """
from steps import Step, logits

def evaluate(model, batches):
    for batch in batches:
        print(logits(model, batch))
"""
LOGITS = """
def logits(model, batch):
    return scaled(model, batch)

def scaled(model, batch):
    return model(batch) / 2
"""
CALLED = ["print(logits(model, batch))"]


def test_a_helper_of_another_file_runs_the_model():
    assert told(EVALUATE, steps=LOGITS) == CALLED


@pytest.mark.parametrize(
    "steps",
    [
        LOGITS.replace("def logits", "@torch.no_grad()\ndef logits"),
        LOGITS.replace("def scaled", "@torch.inference_mode()\ndef scaled"),
        LOGITS.replace("    return scaled", "    with torch.no_grad():\n        return scaled"),
        LOGITS.replace("    return model", "    batch.requires_grad_()\n    return model"),
        LOGITS.replace("model(batch) / 2", "batch / 2"),
    ],
)
def test_a_helper_that_sees_to_gradients_itself_is_left_alone(steps):
    assert told(EVALUATE, steps=steps) == []


@pytest.mark.parametrize(
    ("switch", "lines"),
    [
        ("torch.set_grad_enabled(False)", []),
        ("torch.set_grad_enabled(True)", CALLED),
        ("torch.set_num_threads(1)", CALLED),
    ],
)
def test_a_script_may_switch_them_off_for_all_that_it_calls(switch, lines):
    script = f"""
from run import evaluate

{switch}

def main(model, batches):
    evaluate(model, batches)

main(torch.nn.Linear(2, 1), [])
"""
    assert told(EVALUATE, steps=LOGITS, script=script) == lines


def test_whoever_calls_the_evaluation_may_switch_gradients_off():
    main = """
from run import evaluate

def main(model, batches):
    MANAGER:
        report(model, batches)

def report(model, batches):
    evaluate(model, batches)
"""
    on = main.replace("MANAGER", "if batches")
    off = main.replace("MANAGER", "with torch.no_grad()")
    assert told(EVALUATE, steps=LOGITS, main=on) == CALLED
    assert told(EVALUATE, steps=LOGITS, main=off) == []


def test_a_function_of_the_same_name_in_another_file_says_nothing():
    other = """
def evaluate(model, batches):
    return model(batches)

with torch.no_grad():
    evaluate(1, 2)
"""
    assert told(EVALUATE, steps=LOGITS, other=other) == CALLED


def test_what_is_handed_on_may_be_called_without_gradients():
    assert told(EVALUATE + "\nengine = Step(evaluate)\n", steps=LOGITS) == []


AGENT = """
class Agent:
    def act(self, batch, train):
        if train:
            self.train_step(batch)
        else:
            self.eval_step(batch)

    def eval_step(self, batch):
        raise NotImplementedError

    def train_step(self, batch):
        raise NotImplementedError
"""
RANKER = """
from run import Agent

class Ranker(Agent):
    def eval_step(self, batch):
        return self.model(batch).argmax(-1)
"""


def test_a_step_that_subclasses_fill_in_is_told_where_it_is_called():
    careful = RANKER.replace("    def eval", "    @torch.no_grad()\n    def eval")
    assert told(AGENT, ranker=RANKER) == ["self.eval_step(batch)"]
    assert told(AGENT, ranker=careful) == []
    assert told(AGENT) == []


PREDICT = """
from tagger import Tagger

class Processor:
    def __init__(self):
        self.tagger = Tagger()

    def process(self, batches):
        return [self.tagger.predict(batch) for batch in batches]
"""
TAGGER = """
class Tagger:
    def predict(self, batch):
        return self.model(batch).argmax(-1)
"""


def test_predict_is_looked_for_in_the_classes_that_the_file_knows():
    called = ["return [self.tagger.predict(batch) for batch in batches]"]
    careful = TAGGER.replace("    def", "    @torch.no_grad()\n    def")
    assert told(PREDICT, tagger=TAGGER) == called
    assert told(PREDICT, tagger=careful) == []
    assert told(PREDICT, tagger=TAGGER, other=careful.replace("Tagger", "Other")) == called
    assert told(PREDICT.replace("from tagger", "from others"), tagger=TAGGER) == []


def test_a_function_is_no_model_whatever_its_name():
    source = """
def small_model(batch):
    return batch

def evaluate(batches):
    return [small_model(batch) for batch in batches]
"""
    assert told(source) == []
    assert told(source.replace("def small_model", "def other")) == [
        "return [small_model(batch) for batch in batches]"
    ]


def test_a_forward_by_a_longer_name_is_one_and_a_function_that_was_given_is_not():
    source = """
class Tagger(torch.nn.Module):
    def predict(self, batches):
        return [self.NAME(batch) for batch in batches]
"""
    assert told(source.replace("NAME", "forward_pass")) == [
        "return [self.forward_pass(batch) for batch in batches]"
    ]
    assert told(source.replace("NAME", "forward_func")) == []


SCORER = """
class Scorer(Base):
    def __init__(self, gpt2):
        self.gpt2 = gpt2
        self.gpt2.eval()

    def scores(self, requests):
        kept = []
        for request in requests:
            kept.append(self.gpt2(request).log_softmax(-1))
        return kept
"""
SCORED = ["kept.append(self.gpt2(request).log_softmax(-1))"]


def test_a_model_that_its_object_only_asks_is_evaluated_whatever_the_method_is_called():
    assert told(SCORER) == SCORED
    assert told(SCORER.replace("scores", "log_likelihood")) == SCORED


@pytest.mark.parametrize(
    "scorer",
    [
        SCORER.replace("    def scores", "    @torch.no_grad()\n    def scores"),
        SCORER.replace("self.gpt2.eval()", "self.gpt2.eval().requires_grad_(False)"),
        SCORER.replace("Base", "torch.nn.Module"),  # a loss of what a frozen network sees
        SCORER.replace("scores", "__call__"),
        SCORER.replace("        kept = []", "        kept = []\n        self.gpt2.train()"),
        SCORER.replace("return kept", "torch.stack(kept).mean().backward()"),
        SCORER.replace("self.gpt2.eval()", "pass"),
        SCORER.replace("__init__", "score_once"),
    ],
)
def test_a_model_that_may_be_differentiated_is_not(scorer):
    assert told(scorer) == []


def test_a_model_that_others_train_is_not():
    assert told(SCORER, trainer="def train(scorer):\n    scorer.gpt2.train()\n") == []
    assert told(SCORER, trainer="def train(other):\n    other.model.train()\n") == SCORED


def test_one_answer_of_such_a_model_is_told_where_its_graph_is_cut_off():
    answer = SCORER + "\n    def answer(self, request):\n        return self.gpt2(request)"

    assert told(f"{answer}\n") == SCORED
    cut = "return self.gpt2(request).argmax().item()"
    assert told(f"{answer}.argmax().item()\n") == [*SCORED, cut]


SCRIPT = """
model = build()
model.load_state_dict(torch.load("model.pt", map_location="cpu"))
for batch in batches:
    print(model(batch).sum())
"""


def test_a_script_that_restores_a_model_and_trains_nothing_evaluates_it():
    assert told(SCRIPT) == ["print(model(batch).sum())"]


@pytest.mark.parametrize(
    "source",
    [
        SCRIPT.replace("for batch", "with torch.no_grad():\n  for batch"),
        SCRIPT.replace("for batch", "torch.set_grad_enabled(False)\nfor batch"),
        f"{SCRIPT}    model(batch).sum().backward()\n",
        f"{SCRIPT}model.train()\n",
        f"{SCRIPT}batch.requires_grad = True\n",
        SCRIPT.replace("for batch in batches:\n    print", "print"),
        SCRIPT.replace("model.load_state_dict", "optimizer.load_state_dict"),
    ],
)
def test_a_script_that_may_need_graphs_or_asks_once_is_left_alone(source):
    assert told(source) == []


def test_a_function_of_such_a_script_evaluates_as_well():
    source = """
def main(batches):
    model = build()
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))
    for batch in batches:
        show(model(batch))
"""

    assert told(source) == ["show(model(batch))"]
    assert told(f"{source}\ndef fit(loss):\n    loss.backward()\n") == []


GATHER = """
class Encoder:
    def features(self, images):
        found = []
        for image in images:
            found.extend(self.model(image))
        table = torch.stack(found).squeeze()
        table = table.detach().numpy() if self.host else table.detach().cpu().numpy()
        self.table = {0: table}
        return self.table
"""


def test_features_that_are_gathered_and_then_cut_are_only_looked_at():
    assert told(GATHER) == ["found.extend(self.model(image))"]


@pytest.mark.parametrize(
    "source",
    [
        GATHER.replace("table = table.detach().numpy()", "table = table"),
        GATHER.replace("        table = table.detach", "        other = table.detach"),
        GATHER.replace("found.extend(self", "self.found.extend(self"),
        GATHER.replace("found.extend(self", "put(found, self"),
        GATHER.replace("        self.table =", "        self.whole = found\n        self.table ="),
    ],
)
def test_features_whose_graph_may_go_elsewhere_are_not(source):
    assert told(source) == []


ACTOR = """
class Agent:
    def __init__(self):
        self.model = build()
        self.model.eval()

    def act(self, seen):
        answer = self.model(seen, self.state)
        action, self.state = answer["action"], answer["state"]
        return action
"""


def test_an_agent_that_only_asks_its_model_evaluates_it_at_each_call():
    assert told(ACTOR) == ["answer = self.model(seen, self.state)"]


@pytest.mark.parametrize(
    "source",
    [
        ACTOR.replace("def act", "def score"),
        ACTOR.replace("    def act", "    @torch.no_grad()\n    def act"),
        ACTOR.replace("self.model.eval()", "self.model.to('cuda')"),
        f"{ACTOR}\n    def learn(self, loss):\n        loss.backward()\n",
    ],
)
def test_an_agent_that_may_learn_or_sees_to_gradients_is_left_alone(source):
    assert told(source) == []


def test_a_word_that_only_spells_like_a_switch_switches_nothing():
    source = """
def evaluate(model, batches):
    for batch in batches:
        print(model(batch))
    write_winograd(batches)
"""
    assert told(source) == ["print(model(batch))"]
    assert told(source.replace("write_winograd(batches)", "torch.no_grad().__enter__()")) == []


TRAINING_SCRIPT = """
for epoch in range(9):
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    model.eval()
    for x, y in held_out:
        total += loss_of(model(x), y).item()
"""


@pytest.mark.parametrize("switch", ["model.eval()", "model.train(False)", "model = model.eval()"])
def test_a_training_script_evaluates_at_the_end_of_each_epoch(switch):
    script = TRAINING_SCRIPT.replace("model.eval()", switch)
    assert told(script) == ["total += loss_of(model(x), y).item()"]


@pytest.mark.parametrize(
    "careful",
    [
        TRAINING_SCRIPT.replace("    model.eval()\n", ""),
        TRAINING_SCRIPT.replace("model.eval()", "shown = model.eval()"),  # of another kind
        TRAINING_SCRIPT.replace("model.eval()", "model.eval(); torch.set_grad_enabled(False)"),
        TRAINING_SCRIPT + "        loss_of(model(x), y).backward()\n",
        TRAINING_SCRIPT.replace(
            "    for x, y in held_out", "    model.train()\n    for x, y in held_out"
        ),
    ],
)
def test_a_script_that_trains_or_switches_gradients_there_does_not(careful):
    assert told(careful) == []


MODEL = """
class Part(torch.nn.Module):
    pass

class Recommender(Part):
    def predict(self, batch):
        return self.mixed(batch)

def evaluate(recommender, batches):
    return [recommender.predict(batch) for batch in batches]
"""


def test_a_class_that_registers_buffers_is_a_module_whatever_its_base_is():
    foreign = MODEL.replace("class Part(torch.nn.Module):\n    pass\n", "from flows import Part\n")
    registers = (
        "    def __init__(self):\n        self.register_buffer('mean', None)\n\n    def predict"
    )
    assert told(MODEL) == ["return [recommender.predict(batch) for batch in batches]"]
    assert told(foreign) == []
    assert told(foreign.replace("    def predict", registers)) == told(MODEL)


UNNAMED = """
def make(device):
    f = Network().to(device)
    optimizer = torch.optim.Adam(f.parameters())

    def check(samples):
        return [f(each).argmax().item() for each in samples]
"""


def test_whatever_is_asked_for_its_parameters_is_a_model():
    assert told(UNNAMED) == ["return [f(each).argmax().item() for each in samples]"]
    assert told(UNNAMED.replace("f.parameters()", "others")) == []


def test_a_criterion_is_none_whatever_it_has():
    assert told(UNNAMED.replace("f(", "criterion(").replace("f.", "criterion.")) == []


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("self.each([x])", []),
        ("self(x)", ["print(predictor.model.forward_one(batch))"]),
    ],
)
def test_a_forward_of_another_name_may_see_to_gradients_by_another_method(inner, expected):
    evaluate = """
def evaluate(predictor, batches):
    for batch in batches:
        print(predictor.model.forward_one(batch))
"""
    model = f"""
class Model(torch.nn.Module):
    def forward_one(self, x):
        return {inner}

    def each(self, xs):
        with torch.no_grad():
            return [self(x) for x in xs]
"""
    assert told(evaluate, model=model) == expected


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("predict", "return self.net(x)", ["return self.net(x)"]),
        ("train_part", "return self.net(x)", []),
        (
            "predict",
            "with torch.no_grad():\n            y = self.embed(x)\n        return self.net(y)",
            [],
        ),
    ],
)
def test_an_override_that_trains_or_sees_to_gradients_needs_none_of_its_base(name, body, expected):
    source = f"""
class Base(torch.nn.Module):
    def {name}(self, x):
        with torch.no_grad():
            return self.net(x)

class Model(Base):
    def {name}(self, x):
        {body}
"""
    assert told(source) == expected


ROBUST = """
from attacks import Sign

def fit(model, loader, optimizer):
    for epoch in range(10):
        train_epoch(model, loader, optimizer)
        test_epoch(model, loader)

def test_epoch(model, loader):
    model.eval()
    for x, y in loader:
        print(model(x).argmax())
        print(model(perturbed(model, x, y)).argmax())

def perturbed(model, x, y):
    attack = Sign(model)
    return attack.generate(x, y)
"""
SIGN = """
class Sign:
    def __init__(self, model):
        self.model = model

    def generate(self, x, y):
        x.requires_grad_()
        loss = (self.model(x) - y).sum()
        loss.backward()
        return x + x.grad.sign()
"""


def test_what_an_object_made_on_the_way_differentiates_needs_its_graph():
    noise = SIGN.replace("        x.requires_grad_()\n", "").replace(
        "        loss.backward()\n", ""
    )
    noise = noise.replace("x + x.grad.sign()", "x + torch.randn_like(x)")
    assert told(ROBUST, attacks=noise) == ["print(model(x).argmax())"]
    assert told(ROBUST, attacks=SIGN) == []


COMPONENT = """
class Component:
    def __call__(self, data):
        return self.predict(data)
"""
PARSER = """
from component import Component

class Torch(Component):
    MARK
    def __call__(self, data):
        return super().__call__(data)

class Parser(Torch):
    def predict(self, data):
        self.model.eval()
        found = []
        for batch in data:
            out = self.model(batch)
            found.append(out.argmax().item())
        return found
"""


def test_a_call_that_a_subclass_puts_under_no_grad_goes_on_to_its_base():
    on = PARSER.replace("    MARK\n", "")
    off = PARSER.replace("MARK", "@torch.no_grad()")
    assert told(on, component=COMPONENT) == ["out = self.model(batch)"]
    assert told(off, component=COMPONENT) == []


def test_results_that_such_a_call_keeps_have_no_graph():
    kept = PARSER.replace("out.argmax().item()", "out").replace("data", "loader")
    on = kept.replace("    MARK\n", "")
    off = kept.replace("MARK", "@torch.no_grad()")
    assert told(on, "LK108", component=COMPONENT) == ["found.append(out)"]
    assert told(off, "LK108", component=COMPONENT) == []
