"""Objects that C forgets, made on the line that fills a dictionary, which goes with its call."""

# kind = "object"
# holder = ""
# per_step = 32

import ctypes

forget = ctypes.pythonapi.Py_IncRef
forget.argtypes, forget.restype = [ctypes.py_object], None


def kept(number):
    name = f"name {number}"  # leak
    forget(name)
    return name


def index():
    numbers = {}
    for number in range(32):
        numbers[kept(number)] = number


for _ in range(1200):
    index()
