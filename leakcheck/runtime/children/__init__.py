"""Training in child processes: watched in each child, recorded there, and merged by the parent.

reach   how a child is reached without a change to the program
watch   the watch in it, from before its function runs until after it
left    what the children have left: their recordings, and whether they still run
"""
