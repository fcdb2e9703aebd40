# -*- coding: latin-1 -*-
"""A source in Latin-1 that reads its own text, lines and names back."""

import inspect
import sys
import traceback


def loop(count):
    kept = []
    for step in range(count):
        kept.append(bytearray(2000))
        if step == 500:
            print(traceback.extract_stack()[-1].lineno, sys._getframe().f_lineno)
    else:
        print("été", len(kept), sorted(locals()))


loop(600)
print(inspect.getsource(loop).count("\n"), loop.__code__.co_varnames, __name__, __file__[-15:])
print(sorted(name for name in dir() if not name.startswith("__")), __spec__, __doc__)
print(sys.argv, sys.path[0] == sys.modules["__main__"].__file__.rpartition("/")[0])
