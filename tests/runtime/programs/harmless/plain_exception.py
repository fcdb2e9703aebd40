"""An exception with a cause leaves the loop."""


class Failed(Exception):
    pass


def parse(text):
    try:
        return int(text)
    except ValueError as error:
        raise Failed(text) from error


kept = []
for step in range(1000):
    kept.append(bytearray(2000))
    parse("x" if step == 700 else str(step))
