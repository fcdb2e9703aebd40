"""One thread a process: tests run beside each other, and their programs are tiny."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
