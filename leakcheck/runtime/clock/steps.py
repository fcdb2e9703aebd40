"""When is a step over? The first answer that is there: the optimizer, a loop, the program itself.

torch calls a global hook after every optimizer step; it fires once a step in plain, compiled,
LBFGS, Lightning, Accelerate, Ignite and Hugging Face loops. While no optimizer steps, the user's
own loops tick, and one of them is chosen: the outermost one that has run eight times. With several
optimizers (a GAN) one of them counts; one that is made anew now and then takes over at once. Where
a library has loop and optimizer to itself, the batches of the DataLoader that it goes over are the
steps (fastai, what only predicts), or else its backward passes (a sampler, an attack, SciPy's
optimizers).
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from leakcheck.runtime.clock import engine, loaders, ticks
from leakcheck.runtime.clock.batches import Feeding
from leakcheck.runtime.clock.beside import OVER_AFTER, OVER_AFTER_S, Beside
from leakcheck.runtime.clock.calls import CallsAround, calls_around
from leakcheck.runtime.clock.graphs_made import FEWEST_THAT_MADE, GraphsMade
from leakcheck.runtime.clock.optimizers import (
    an_optimizer_waits,
    hook_optimizers,
    program_differentiates,
)
from leakcheck.runtime.guard import ErrorGuard, in_main_thread
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.line_events import LineEvents

if TYPE_CHECKING:
    from leakcheck.runtime.judgement.release import Waits
    from leakcheck.runtime.sentinel import Sentinel

CHOSEN_AFTER = FEWEST_THAT_MADE + 1  # the first iteration of a loop does not tell of Nodes
LOADER = -1  # what gives a library its batches, where it is the loop of the steps
LOADER_AFTER = 2 * CHOSEN_AFTER  # a loop of the user's over it comes first
BACKWARD = -2  # what asks for gradients, where nothing else is the step
BACKWARD_AFTER = 8 * CHOSEN_AFTER  # anything else comes first: one step may take several
SUM_OF_STEPS = 200  # samples of a batch, or tasks, whose losses may be added up before a backward
SUM_BY_HAND_STEPS = 100  # without an optimizer that waits for them
FIRST_UPDATE_STEPS = 5000  # of a rollout, whose graph an optimizer that was made may yet use
MOST_BEFORE_TRAINING = 10_000  # turns of a loop, behind which no training is waited for
SWITCHED_OFF_AFTER = 20_000  # iterations of a loop that is no step: stop paying for them
LOOK_AGAIN_EVERY = 1024  # ticks without an optimizer step
SHORT_TURN_S = 1e-3  # without a graph: a batch's samples, of which the loop around is the step,
FEWEST_AROUND = 64  # if that one turns often enough to be judged


# what a step is called, and over what its loop goes
_OF_LIBRARIES = {LOADER: ("batches of a DataLoader", "data"), BACKWARD: ("backward passes", "data")}


class StepClock:
    """Turns optimizer hooks and loop ticks into steps of a sentinel; `on_step` follows each."""

    def __init__(
        self, sentinel: Sentinel, on_step: Callable[[], None], guard: ErrorGuard | None = None
    ) -> None:
        self._sentinel = sentinel
        self._on_step = on_step
        self.guard = guard or ErrorGuard()  # whoever calls the clock does so by it
        self._optimizer: weakref.ref[object] | None = None
        self._beside = Beside()
        self._others = 0
        self._counts: dict[int, int] = {}
        self._passed: dict[int, int] = {}  # iterations in threads whose steps do not count
        self._chosen: int | None = None
        self._outer: dict[int, int] = {}  # depth of the loops around that of the steps
        self._idle_ticks = 0
        self._last_step_s = 0.0
        self._chosen_at = (0.0, 0)  # when, and after how many iterations of that loop
        self._around: Sequence[int] = ()
        self._graphs = GraphsMade()
        self._feeding = Feeding()
        self._around_step = CallsAround()  # of the optimizer that counts
        self._is_left = False  # what was around the steps that were counted last
        self._inside: set[int] = set()  # loops that tick while a library goes over its batches
        self._trusted = True
        self._updated = False  # some optimizer has stepped
        self._differentiated = False  # something has asked for gradients
        self._asked, self._awaits = 0, False  # whether one waits to
        self._moved = False
        self._nearest, self._ticks_then, self._stepped = -1, 0, 0  # the loop around the optimizer
        self._thread = 0
        self._stopped = False
        self._changing = threading.RLock()  # a prefetching thread ticks beside the first step

    def listen(self) -> None:
        """Hear from now on of optimizers, loops, DataLoaders and backward passes."""
        hook_optimizers(self.guard.hidden(self.optimizer_stepped))
        ticks.listen(self.guard.hidden(self.ticked))
        loaders.listen(self)
        engine.listen(self)

    def optimizer_stepped(self, optimizer: object, *_: object) -> None:
        """Count a step of the optimizer that counts; torch calls this after every step."""
        if self._stopped:
            return
        counted = self._optimizer() if self._optimizer is not None else None
        if counted is not optimizer:
            self._others += 1
            idle = counted is None or self._others >= OVER_AFTER
            known = self._beside.knows(optimizer)
            if not self._beside.makes_way(optimizer, idle=idle):
                return
            if self._optimizer is not None and not known:
                self._sentinel.begins_anew()
            self._take_optimizer(optimizer, restart=self._optimizer is None)
        self._thread = threading.get_ident()
        self._stepped += 1
        if self._moved or self._stepped == CHOSEN_AFTER:
            self._look_around()
        self._others = self._idle_ticks = 0
        self._sentinel.step()
        self._on_step()

    def ticked(self, loop: int) -> None:
        """Count an iteration of one of the user's loops."""
        if self._is_other_thread():
            self._pass_over(loop)
            return
        if loop == self._chosen:
            self._step_of_chosen(loop)
            return
        if depth := self._outer.get(loop, 0):
            self._sentinel.phase(depth)
            if self._trusted:
                return
        count = self._counts[loop] = self._counts.get(loop, 0) + 1
        if self._optimizer is not None:
            if _is_traced_by_program():
                ticks.switch_off(loop)
            self._moved |= not count & (count - 1)  # another loop: its optimizer may be the same
            self._idle_ticks += 1
            if self._idle_ticks % LOOK_AGAIN_EVERY == 0:
                self._look_whether_training_is_over()
        else:
            self._graphs.note(loop)
            self._tick_beside_chosen(loop, count)
        if count == SWITCHED_OFF_AFTER:
            ticks.switch_off(loop)

    def _pass_over(self, loop: int) -> None:
        """Note an iteration in another thread than that of the steps: no more than is needed."""
        count = self._passed[loop] = self._passed.get(loop, 0) + 1
        if count == SWITCHED_OFF_AFTER or _is_traced_by_program():
            ticks.switch_off(loop)

    def gave(self, _: Any, dataset: Any, count: int) -> None:
        """Count a batch of a DataLoader that a library goes over, its optimizer none of torch's."""
        if not count or self._optimizer is not None or not in_main_thread():
            return
        of_loop = self._chosen not in (None, LOADER)
        if (of_loop and self._trusted) or not self._feeding.is_step(dataset):
            return
        if self._chosen == LOADER:
            self._step_of_chosen(LOADER)
            return
        self._graphs.note(LOADER)
        self._count_of_library(LOADER, LOADER_AFTER)

    def began_backward(self) -> None:
        """Count a backward pass, of a library whose loop and optimizer are its own."""
        self._differentiated = True
        if self._optimizer is not None or not in_main_thread():
            return
        if self._chosen == BACKWARD:
            self._step_of_chosen(BACKWARD)
        elif self._chosen is None or not self._trusted:
            self._graphs.note(BACKWARD)
            self._count_of_library(BACKWARD, BACKWARD_AFTER)

    def _count_of_library(self, source: int, least: int) -> None:
        count = self._counts[source] = self._counts.get(source, 0) + 1
        if count >= least and not count & (count - 1):
            self._consider_library(source)

    def _tick_beside_chosen(self, loop: int, count: int) -> None:
        self._others += 1
        if self._others == 1:
            self._last_step_s = perf_counter()
        if count >= CHOSEN_AFTER and not count & (count - 1):
            self._consider(loop)

    def stop(self) -> None:
        """Count nothing any more, as in a forked child, or where requests are the steps."""
        self._stopped = True
        ticks.stop_listening()
        loaders.stop_listening(self)
        engine.stop_listening(self)
        self._chosen = self._optimizer = None
        self._outer = {}

    def _take_optimizer(self, optimizer: object, *, restart: bool) -> None:
        around = ticks.enclosing(sys._getframe(2)) if restart else ()
        # what a loop with graphs leaves may be what is trained on
        over = self._chosen not in (None, LOADER, BACKWARD, *around) and not self._trusted
        with self._changing:
            self._optimizer = weakref.ref(optimizer)
            self._trusted = self._updated = True
            self._chosen = None
        if restart:
            self._sentinel.restart("optimizer step", trusted=True, over=over)
        self._look_around(anew=restart)

    def _look_around(self, *, anew: bool = False) -> None:
        """Look which loop is around that of the steps: what grows may be released when it turns."""
        self._moved, before = False, self._outer
        self._around_step = calls_around(sys._getframe(2))
        around = ticks.around_steps(ticks.enclosing(sys._getframe(2)))
        # a trainer's loops are not seen: its loader tells when an epoch begins
        by_trainer = not around or self._has_not_ticked(around[0])
        self._outer = _by_depth(around, 2) if by_trainer else _by_depth(around[1:])
        if self._outer == before and not anew:
            return
        waits: Waits = "all but graphs" if self._outer else "nothing"
        outermost = max(self._outer.values(), default=0)
        self._sentinel.waits_for(waits, outermost, by_loader=by_trainer)

    def _has_not_ticked(self, loop: int) -> bool:
        """Say whether a loop goes on more rarely than the optimizer steps: another is inside it."""
        count = self._counts.get(loop, 0)
        if loop != self._nearest:
            self._nearest, self._ticks_then, self._stepped = loop, count, 0
        return self._stepped >= CHOSEN_AFTER and count == self._ticks_then

    def _consider(self, ticking: int) -> None:
        around = ticks.enclosing(sys._getframe(3))
        # a tick has the line of the statement after it, which may be another loop's
        around = around[around.index(ticking) :] if ticking in around else around
        around = ticks.around_steps(around)
        busy = [loop for loop in around if self._counts.get(loop, 0) >= CHOSEN_AFTER]
        if not busy or self._chosen in around:
            return
        if self._chosen is None or self._is_better(busy[-1]):
            with self._changing:
                if self._optimizer is None:
                    self._choose(busy[-1], around)

    def _is_better(self, loop: int) -> bool:
        # than the chosen one, which ticked last a while ago: an epoch, an evaluation and the loop
        # over the parameters inside a step are not; the step around such a loop is
        makes_graphs = self._graphs.made_by(loop)
        if self._chosen == LOADER and not self._trusted and loop not in self._around:
            is_other = self._others >= OVER_AFTER and loop not in self._inside
            return makes_graphs or is_other
        if self._trusted:
            return makes_graphs and loop not in self._around and self._is_over()
        often = self._counts[loop] >= FEWEST_AROUND
        inside = self._is_detail_of(loop) or (often and self._turns_are_short())
        return makes_graphs or loop not in self._around or inside

    def _is_detail_of(self, loop: int) -> bool:
        # a few iterations within each of another loop's: the other is what the program repeats
        return self._counts.get(self._chosen or 0, 0) < CHOSEN_AFTER * self._counts[loop]

    def _turns_are_short(self) -> bool:
        began_s, count = self._chosen_at
        turns = self._counts.get(self._chosen or 0, 0) - count
        return turns >= CHOSEN_AFTER and perf_counter() - began_s < turns * SHORT_TURN_S

    def _is_over(self) -> bool:
        idle_s = perf_counter() - self._last_step_s
        return self._others >= OVER_AFTER and idle_s > OVER_AFTER_S

    def _is_other_thread(self) -> bool:
        if self._thread in (0, threading.get_ident()):
            return False
        return self._trusted or not in_main_thread()

    def _choose(self, loop: int, around: Sequence[int]) -> None:
        self._around = around[around.index(loop) + 1 :]
        self._chosen, self._outer = loop, _by_depth(self._around)
        self._chosen_at = perf_counter(), self._counts[loop]
        self._thread = threading.get_ident()
        place = ticks.loops[loop]
        waits = "all but graphs" if self._outer else "nothing"
        if self._outer and place.over == "range":
            waits = "all"  # an unrolled recurrence keeps its graph until the sequence ends
        endless = place.over == "forever" and in_main_thread()  # a helper's serves another loop
        self._trusted = endless or self._graphs.made_by(loop)
        clock = f"iterations of the loop at {frames.shown(place.path)}:{place.line}"
        self._sentinel.restart(
            clock,
            trusted=self._trusted,
            waits=waits,  # type: ignore[arg-type]
            outermost=len(self._outer),
            graph_patience_steps=self._graph_patience_steps(place.over),
            trains=False,
            over=self._is_left,
        )
        self._is_left = False

    def _consider_library(self, source: int) -> None:
        around = ticks.enclosing(sys._getframe())
        if self._chosen in around:
            return
        with self._changing:
            self._inside = self._counts.keys() - {source, *around}
            self._around = ticks.around_steps(around)
            nearest = 2 if source == LOADER else 1  # a loader's own epochs come between
            self._chosen, self._outer = source, _by_depth(self._around, nearest)
            self._thread = threading.get_ident()
            self._trusted = self._graphs.made_by(source)
        waits: Waits = "all but graphs" if self._outer else "nothing"
        clock, over = _OF_LIBRARIES[source]
        self._sentinel.restart(
            clock,
            trusted=self._trusted,
            graph_patience_steps=self._graph_patience_steps(over),
            trains=False,
        )
        outermost = max(self._outer.values(), default=0)
        self._sentinel.waits_for(waits, outermost, by_loader=source == LOADER)

    def _graph_patience_steps(self, over: str) -> int:
        """Return for how many iterations of a loop a graph may be kept for one backward.

        An agent's loop asks its environment; one over data may sum up a batch, not an epoch.
        """
        if not self._updated and an_optimizer_waits():
            return SUM_OF_STEPS if over == "data" else FIRST_UPDATE_STEPS
        return 0 if over == "forever" else SUM_BY_HAND_STEPS

    def awaits_training(self) -> bool:
        """Say whether an evaluation may come before the training.

        An optimizer was made and none has stepped, or the program has lines that differentiate,
        none of which has run. Asked anew after twice as many times.
        """
        if self._updated:
            return False
        self._asked += 1
        if not self._asked & (self._asked - 1):
            self._awaits = an_optimizer_waits() or self._has_yet_to_differentiate()
        return self._awaits

    def _has_yet_to_differentiate(self) -> bool:
        chosen = self._chosen if self._chosen is not None else LOADER
        endless = chosen >= 0 and ticks.loops[chosen].over == "forever"
        if self._differentiated or endless or self.turns > MOST_BEFORE_TRAINING:
            return False
        return program_differentiates()

    @property
    def turns(self) -> int:
        """How often the loop that makes the steps has turned, 0 if an optimizer makes them."""
        return self._counts.get(self._chosen or 0, 0) if self._optimizer is None else 0

    def _step_of_chosen(self, loop: int) -> None:
        self._others = 0
        self._counts[loop] += 1
        if not self._trusted:
            # a loop that makes no graph may gather a data set for as long as it likes: it is
            # judged when the program ends
            self._graphs.note(loop)
            if self._graphs.made_by(loop):
                self._trusted = True
                self._sentinel.trust()
        self._sentinel.step()
        self._on_step()

    def _look_whether_training_is_over(self) -> None:
        if self._around_step.are_left(sys._getframe(2)):
            self._optimizer, self._thread, self._is_left = None, 0, True
            self._beside = Beside()
            self._counts.clear()


def _by_depth(loops: Sequence[int], nearest: int = 1) -> dict[int, int]:
    return {loop: depth for depth, loop in enumerate(loops, nearest)}


def _is_traced_by_program() -> bool:
    return type(sys.gettrace()) not in (type(None), LineEvents)
