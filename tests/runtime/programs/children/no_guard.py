"""A script that lacks `if __name__ == "__main__"`: its child fails as it is spawned."""

import multiprocessing


def work():
    pass


child = multiprocessing.get_context("spawn").Process(target=work)
child.start()
child.join()
print(child.exitcode)
