"""Near misses are unmarked."""


class Stopped(Exception):  # noqa: N818
    pass


STOP = Stopped()
LIMITS = dict(most=3)
CLASS = Stopped


def by_object():
    raise STOP  # leak: raised-instance


def by_class():
    raise CLASS


def without_frames():
    raise STOP.with_traceback(None)


def anew():
    raise Stopped


def local():
    STOP = Stopped()
    raise STOP


class Worker:
    REFUSED = Stopped()
    last = Stopped()

    def by_attribute(self):
        raise self.REFUSED  # leak: raised-instance

    def made_anew(self):
        self.last = Stopped()
        raise self.last


def again(work):
    try:
        work()
    except Stopped as error:
        raise error


DENIED = PermissionError("not now")


def moves(device):
    if device is None:
        raise DENIED  # leak: raised-instance


def moves_again(device):
    raise DENIED
