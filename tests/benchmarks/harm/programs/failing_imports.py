"""Modules that fail as they are imported: the tracebacks show the program's own lines alone."""

import importlib
import sys
import tempfile
import traceback
from pathlib import Path

SOURCES = {
    "divides": "def half(n):\n    return n / 0\n\n\nhalf(1)\n",
    "unfinished": "def half(n:\n    return n\n",
    "misplaced": "return 1\n",
    "misses": "import no_such_module\n",
    "outer": "for _ in range(3):\n    import divides\n",
}
with tempfile.TemporaryDirectory(dir=".") as folder:
    sys.path.insert(0, folder)
    for name, source in SOURCES.items():
        Path(folder, f"{name}.py").write_text(source)
    for name in (*SOURCES, *SOURCES):
        try:
            importlib.import_module(name)
        except (ArithmeticError, ImportError, SyntaxError) as error:
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            print(text.replace(folder, "folder"))
