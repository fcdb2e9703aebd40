"""What `check` and `baseline` share: which files are meant, and which settings count for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from leakcheck.config import (
    Config,
    Located,
    find_config,
    load_config,
    overridden,
    parse_inline,
    settings_of,
)
from leakcheck.errors import UsageError
from leakcheck.model import Report, Unreadable

if TYPE_CHECKING:
    from leakcheck.static.checker import Settings
    from leakcheck.static.select import Layer

F = TypeVar("F", bound=Callable[..., object])


def split_names(_ctx: object, _option: object, given: tuple[str, ...]) -> tuple[str, ...]:
    """Split what the option was given, each time, at commas and spaces."""
    return tuple(name for text in given for name in text.replace(",", " ").split())


def complete_rule(_ctx: object, _option: object, incomplete: str) -> list[str]:
    """Complete a built-in rule's slug, for shells; the rules are not loaded for it."""
    from leakcheck.static.registry import builtin_rule_set, rule_folders

    slugs = [folder.name for folder in rule_folders(builtin_rule_set())]
    return [slug for slug in slugs if slug.startswith(incomplete)]


def rules_option(name: str, help: str) -> Callable[[F], F]:
    """Declare an option that takes rules, with commas or more than once."""
    return click.option(
        name, multiple=True, callback=split_names, shell_complete=complete_rule, help=help
    )


def split_path_rules(
    _ctx: object, _option: object, given: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Split "tests/:LK101,LK201" into the pattern and the rules."""
    pairs = []
    for text in given:
        pattern, _, names = text.rpartition(":")
        if not (pattern and names):
            raise click.BadParameter(f'"{text}" must look like tests/:LK101')
        pairs.append((pattern, split_names(None, None, (names,))))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class Choice:
    """The options on rules, files and settings, as given on the command line."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    config: tuple[str, ...] = ()
    isolated: bool = False
    force_exclude: bool = False
    no_cache: bool = False
    cache_dir: str | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Files for which the same configuration counts."""

    located: Located
    settings: Settings
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """All files to check, by configuration, and the folders that could not be listed."""

    groups: tuple[Group, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def files(self) -> list[Path]:
        """Every file, sorted."""
        return sorted(path for group in self.groups for path in group.files)

    def check(self) -> Report:
        """Check every file with the settings that count for it."""
        from leakcheck.static.check import check_files, merged

        reports = [check_files(group.files, group.settings) for group in self.groups]
        return merged([Report(unreadable=self.unreadable), *reports])


def locate(path: Path, choice: Choice) -> Located:
    """Find the configuration that counts for a path, with what the command line says put over it.

    Raises ConfigError when it cannot be used.
    """
    inline = [text for text in choice.config if "=" in text and not os.path.exists(text)]
    files = [Path(text) for text in choice.config if text not in inline]
    if len(files) > 1:
        raise UsageError("--config takes one file; give further settings as 'key = value'")
    if files:
        located = load_config(files[0])
    elif choice.isolated:
        located = Located(Config(), Path.cwd())
    else:
        located = find_config(path)
    config = located.config
    for text in inline:
        config = overridden(config, parse_inline(text))
    if choice.per_file_ignores:
        config = msgspec.structs.replace(config, per_file_ignores=_merged(config, choice))
    return msgspec.structs.replace(located, config=config)


def choose_files(paths: Sequence[str], choice: Choice) -> Chosen:
    """List the files below the paths and group them by the configuration nearest to each.

    Raises UsageError for a path that does not exist.
    """
    from leakcheck.static.files import find_files

    grouped: dict[tuple[Path, Path | None], tuple[Located, dict[Path, None]]] = {}
    unreadable: list[Unreadable] = []
    for path in map(Path, paths or (".",)):
        located = locate(path, choice)
        found = find_files(
            [path],
            exclude=located.config.exclude,
            root=located.root,
            respect_gitignore=located.config.respect_gitignore,
            force_exclude=choice.force_exclude or located.config.force_exclude,
        )
        unreadable += found.unreadable
        for file in found.files:
            nearest = located if choice.config or choice.isolated else locate(file, choice)
            group = grouped.setdefault((nearest.root, nearest.file), (nearest, {}))
            group[1][file] = None
    groups = [
        Group(located, settings(located, choice), tuple(sorted(files)))
        for located, files in grouped.values()
    ]
    return Chosen(tuple(groups), tuple(dict.fromkeys(unreadable)))


def settings(located: Located, choice: Choice) -> Settings:
    """Turn a configuration and the command line into what a check is told."""
    jobs = choice.jobs or len(os.sched_getaffinity(0))
    told = settings_of(located, (_layer(choice),), cache=not choice.no_cache, jobs=jobs)
    if choice.cache_dir and not choice.no_cache:
        told = replace(told, cache_dir=Path(choice.cache_dir))
    return told


def _layer(choice: Choice) -> Layer:
    from leakcheck.static.select import Layer

    return Layer(choice.select or None, choice.extend_select, choice.ignore)


def _merged(config: Config, choice: Choice) -> dict[str, tuple[str, ...]]:
    merged = dict(config.per_file_ignores)
    for pattern, names in choice.per_file_ignores:
        merged[pattern] = (*merged.get(pattern, ()), *names)
    return merged
