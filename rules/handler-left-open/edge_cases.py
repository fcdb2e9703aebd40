"""Near misses are unmarked."""

import logging

log = logging.getLogger("torch")


def by_helper(path):
    added = add_file_handler(log, path)
    log.removeHandler(added)  # leak: handler-left-open


def closed_in_any_order(path):
    own = logging.FileHandler(path)
    log.addHandler(own)
    own.close()
    log.removeHandler(own)


def console():
    stream = logging.StreamHandler()
    log.addHandler(stream)
    log.removeHandler(stream)


def handed_on(path):
    other = logging.FileHandler(path)
    log.removeHandler(other)
    finish(other)
