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


def moved(old, new, path):
    moving = logging.FileHandler(path)
    old.addHandler(moving)
    old.removeHandler(moving)
    new.addHandler(moving)
    return moving


def opened_elsewhere(logger, path):
    local = logging.FileHandler(path)
    logger.addHandler(local)
    return logger.handlers


def taken_from_a_table(logger, known):
    local = known.pop("stdout")  # another one, of the same name
    logger.removeHandler(local)
