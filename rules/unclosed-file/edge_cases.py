"""Near misses are unmarked."""

import json
import zipfile


def read(path):
    return open(path).read()  # leak: unclosed-file


def report(path, values):
    json.dump(values, open(path, "w"))  # leak: unclosed-file


def named(path):
    file = open(path)  # leak: unclosed-file
    return json.load(file)


def unpacked(path, folder):
    archive = zipfile.ZipFile(path)  # leak: unclosed-file
    archive.extractall(folder)


def closed(path):
    file = open(path)
    values = json.load(file)
    file.close()
    return values


def touched(path):
    open(path, "w").close()


def returned(path):
    return open(path)


def handed_on(path, reader):
    file = open(path)
    return reader(file)


def handed_on_at_once(path, reader):
    return reader(open(path))


class Kept:
    def __init__(self, path):
        self.file = open(path)


def log_file(folder):
    return open(f"{folder}/log.txt", "a")


def write_log(folder, text):
    log = log_file(folder)  # leak: unclosed-file
    log.write(text)


class Log:
    def __init__(self, path):
        self.path = path
        self.file = None

    def _ensure_open(self):
        if self.file is None:
            self.file = open(self.path, "a")
        return self.file

    def write(self, text):
        file = self._ensure_open()
        file.write(text)
