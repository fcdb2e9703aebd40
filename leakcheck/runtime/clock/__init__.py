"""When is a step over? Optimizers, loops, or the time."""
