"""What can go wrong on our side, and the exit status that says so.

LeakcheckError
 +- UsageError       a wrong option, an unknown rule, a missing file
 +- ConfigError      a setting in pyproject.toml or leakcheck.toml that cannot be used
 +- RuleError        a rule folder that cannot be loaded
 +- SourceError      a source file that cannot be parsed
 +- RecordingError   a recording, snapshot or baseline that cannot be read
 +- WriteError       a file that cannot be written; what was there is as it was

Each is printed as one line, `leakcheck: <message>`; anything else that escapes is a bug and keeps
its traceback.
"""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FOUND = 1
EXIT_UNCLEAR = 2
EXIT_BISECT_SKIP = 125  # `git bisect run` passes over a commit that answers this
EXIT_BISECT_ABORT = 128  # and ends; it would take 2 for a bad commit


class LeakcheckError(Exception):
    """leakcheck could not do its work: what, which value, where, and what to do about it."""

    exit_code = EXIT_UNCLEAR


class UsageError(LeakcheckError):
    """The command line asks for something that does not exist or does not fit together."""


class ConfigError(LeakcheckError):
    """A configuration file holds a setting that cannot be used."""


class RuleError(LeakcheckError):
    """A rule folder cannot be loaded."""


class SourceError(LeakcheckError):
    """A source file cannot be parsed: broken, or nested too deeply."""


class RecordingError(LeakcheckError):
    """A recorded file is missing, truncated or not what it claims to be."""


class WriteError(LeakcheckError):
    """A file cannot be written; the one that was there is as it was."""
