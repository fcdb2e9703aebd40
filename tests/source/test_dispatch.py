"""A call may come to something else: then what adds is called no more, and no condition says so."""

from __future__ import annotations

import textwrap

import pytest

from leakcheck.source.guards import Guard
from leakcheck.source.uses import uses_of
from tests.source.asked import ADDS, held, program_of

CALLS = "# calls "  # and then the function that was seen to be called there
RUNS = "# runs "  # the same of a call that had begun before, and goes on


def guard_of(text: str, holder: str) -> Guard:
    """Return the guard of the line that adds, which the marked calls were seen to lead to."""
    text = textwrap.dedent(text)
    text = text if ADDS in text else REMEMBER + text
    program = program_of(text, complete=True)
    lines = list(enumerate(text.splitlines(), 1))
    stack = tuple(
        ("train.py", number, line.partition(marker)[2])
        for number, line in lines
        for marker in (CALLS, RUNS)
        if marker in line
    )
    kept = held(program, holder)
    ran = {("train.py", number): 20 for number, line in lines if ADDS in line or CALLS in line}
    (add,) = (
        use for use in uses_of(program, kept, ran, {kept.adds[0]: stack}) if use.role == "add"
    )
    return add.guard


def test_a_method_that_is_set_anew_may_be_called_no_more():
    text = """
    class Calibrator:
        def __init__(self):
            self.kept = []
            self.observe = self._collect

        def _collect(self, x):
            self.kept.append(x)  # adds
            if x.mean() > 3:
                self.observe = self._done

        def _done(self, x):
            pass

    calibrator = Calibrator()
    for x in batches:
        calibrator.observe(x)  # calls _collect
    """
    guard = guard_of(text, "Calibrator.kept")

    assert (guard.kind, guard.test, guard.line) == ("flag", "self.observe = self._done", 10)


REMEMBER = """
class Remember:
    def __init__(self):
        self.kept = []

    def note(self, x):
        self.kept.append(x)  # adds

"""
MAY_END = {
    "another object": """
        class Schedule:
            def __init__(self):
                self.current = Remember()

            def update(self, step):
                if step == 300:
                    self.current = Forget()

        schedule = Schedule()
        for step, x in enumerate(batches):
            schedule.update(step)
            schedule.current.note(x)  # calls note
    """,
    "taken away by whom calls": """
        class Recorder:
            def __init__(self):
                self.kept = []

            def __call__(self, x):
                self.kept.append(x)  # adds

        class Trainer:
            recorder = None

            def after_step(self, x):
                if self.recorder is not None:
                    self.recorder(x)  # calls __call__

            def fit(self):
                for x in batches:
                    self.after_step(x)  # calls after_step

        def warm_up(trainer, recorder):
            trainer.recorder = recorder
            trainer.fit()
            trainer.recorder = None
    """,
    "a name that is computed": """
        class Remember:
            def __init__(self):
                self.kept, self.state = [], "collect"

            def __call__(self, x):
                getattr(self, f"on_{self.state}")(x)  # calls on_collect

            def on_collect(self, x):
                self.kept.append(x)  # adds
                if len(x) > 9:
                    self.state = "use"

        remember = Remember()
        for x in batches:
            remember(x)  # calls __call__
    """,
    "a function put in place of another": """
        class Remember:
            def __init__(self, module):
                self.kept, self.module = [], module

            def install(self):
                original = self.original = self.module.forward

                def spying(x):
                    self.kept.append(x)  # adds
                    return original(x)

                self.module.forward = types.MethodType(spying, self.module)

            def uninstall(self):
                self.module.forward = self.original

        for x in batches:
            net(x)  # calls spying
    """,
    "an element that is popped": """
        handlers = {"step": Remember().note}
        for step, x in enumerate(batches):
            handlers["step"](x)  # calls note
            if step == 300:
                handlers.pop("step")
    """,
    "a list that is filtered": """
        callbacks = [Remember()]
        for x in batches:
            for each in callbacks:
                each.note(x)  # calls note
            callbacks = [each for each in callbacks if not each.done]
    """,
}
GOES_ON = {
    "only a constructor sets it": """
        class Trainer:
            def __init__(self):
                self.memory = Remember()

            def fit(self):
                for x in batches:
                    self.memory.note(x)  # calls note
    """,
    "it is made after the constructor": """
        class Trainer:
            def __init__(self):
                self.memory = None

            def setup(self):
                self.memory = Remember()

            def fit(self):
                for x in batches:
                    self.memory.note(x)  # calls note
    """,
    "the list loses nothing": """
        callbacks = [Remember()]
        callbacks.append(Log())
        for x in batches:
            for each in callbacks:
                each.note(x)  # calls note
    """,
    "where a condition does not hold the steps end": """
        def train(limit):
            for step, x in enumerate(batches):
                if step >= limit:
                    break
                net(x)  # calls note

        net.register_forward_hook(Remember().note)
        train(load())  # runs train
    """,
    "another attribute is set anew": """
        class Remember:
            def __init__(self):
                self.kept, self.rate = [], 1.0

            def note(self, x):
                self.kept.append(x)  # adds
                self.rate = 0.5

        memory = Remember()
        for x in batches:
            memory.note(x)  # calls note
    """,
}


@pytest.mark.parametrize("text", MAY_END.values(), ids=MAY_END)
def test_what_is_called_may_be_another_from_some_step_on(text):
    assert guard_of(text, f"{_owner(text)}.kept").ceases


@pytest.mark.parametrize("text", GOES_ON.values(), ids=GOES_ON)
def test_what_is_called_stays_as_it_is(text):
    assert not guard_of(text, f"{_owner(text)}.kept").ceases


def _owner(text: str) -> str:
    return "Recorder" if "class Recorder" in text else "Remember"
