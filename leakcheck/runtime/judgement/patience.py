"""How long the course of a watch waits for each thing before it decides."""

from __future__ import annotations

MORE_THAN_EXPECTED = 1.5
PHASES_THAT_CONFIRM = 3
PERIODS_THAT_CONFIRM = 5  # of what may take away at each n-th step
SHORT_PHASE_STEPS = 30  # phases such as the words of a line come too often to look at each
# as many steps as it took to establish growth, or as the longest rest in it, without a gain: it may
# be full, as what each epoch adds would have come again
TIMES_TO_END = 1.5
EVEN_STEPS = 30  # to confirm a heap that gains the same on every step
FINE_STEPS = 300  # to confirm blocks where all count: of one object in ten steps thirty are new
EARLY_STEPS = 200  # before them what may fill up is not yet called a leak
# that something grows evenly while what may take away from it does not come, in a loop of which no
# turn is waited for
NEVER_CAME_STEPS = 5000
# that it goes on growing beside a statement which ran and took nothing from it: ten lists that are
# emptied by turns, one every thirty steps
DISPUTED_STEPS = 300
FREE_WHILE_IN_DOUBT = 15  # checkpoints, of loops without a graph: the budget is the training's
WORTH_A_NOTICE = {True: 1 << 20, False: 1000}  # bytes, objects that came and stayed
