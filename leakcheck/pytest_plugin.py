"""The pytest plugin: tests that train are watched, and fail when they leak."""

from __future__ import annotations
