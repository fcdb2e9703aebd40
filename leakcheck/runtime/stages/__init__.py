"""The course of a watch: watching, then confirming, attributing, waiting, and growing or steady.

course       the machine: which stage the watch of one loop is in, and what follows from a move
moves        what a stage says comes next, with what it hands over
loop         what the stages of one loop share: its readings, what is excused, what is told
watching, confirming, attributing, waiting, settled    the stages; none of them knows another
attribution  the window of the stage of that name: how long it is, and what it found
"""
