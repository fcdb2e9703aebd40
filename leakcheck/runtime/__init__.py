"""A running loop in, a verdict out: what grows, how fast, which line adds to it, who holds it.

clock          when a step is over: the optimizer, a loop, the time
readings       what the process holds at that moment, as series of integers
judgement      does it grow? suspected, then confirmed on new steps
attribution    a short window: the lines that add to it, the objects that hold it
introspection  live objects, frames and Nodes, which the two above look at
stages         the course of one watch through all this; `conclusion` makes its report
sentinel       the API; `script` runs a program under it, `isolation` runs it in parts
children       the same in the child processes that a program starts; `merge` makes one report
"""
