"""Find memory leaks in PyTorch training code: in the source, in tests and on the run.

Importing this package imports neither torch nor libcst; each name below is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakcheck.errors import LeakcheckError as LeakcheckError
    from leakcheck.model import Finding as Finding
    from leakcheck.model import Report as Report
    from leakcheck.model import Suspect as Suspect
    from leakcheck.model import Trend as Trend
    from leakcheck.released import NotReleasedError as NotReleasedError
    from leakcheck.released import expect_released as expect_released
    from leakcheck.runtime.requests import Requests as Requests
    from leakcheck.runtime.requests import request as request
    from leakcheck.runtime.sentinel import Sentinel as Sentinel
    from leakcheck.runtime.watched import watch as watch
    from leakcheck.static.check import check_paths as check_paths
    from leakcheck.static.engine import check_source as check_source

__version__ = "0.1.0"

_HOME_OF = {
    "Finding": "leakcheck.model",
    "LeakcheckError": "leakcheck.errors",
    "NotReleasedError": "leakcheck.released",
    "Report": "leakcheck.model",
    "Requests": "leakcheck.runtime.requests",
    "Sentinel": "leakcheck.runtime.sentinel",
    "Suspect": "leakcheck.model",
    "Trend": "leakcheck.model",
    "check_paths": "leakcheck.static.check",
    "check_source": "leakcheck.static.engine",
    "expect_released": "leakcheck.released",
    "request": "leakcheck.runtime.requests",
    "watch": "leakcheck.runtime.watched",
}

__all__ = [*sorted(_HOME_OF), "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'leakcheck' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
