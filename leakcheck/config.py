"""Settings from `[tool.leakcheck]` in pyproject.toml, or from leakcheck.toml.

The nearest file upward from a checked path counts, alone: nothing is merged. Keys are the names of
the command line's options, and what the command line says comes after what the file says.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from leakcheck.errors import ConfigError
from leakcheck.report import FINDING_FORMATS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from leakcheck.static.checker import Settings
    from leakcheck.static.select import Layer

OWN_NAMES = ("leakcheck.toml", ".leakcheck.toml")
TABLE = "[tool.leakcheck]"
_TYPES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "a text",
}


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a project decides for every check; the field names are the settings' names."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    rule_sets: tuple[str, ...] = ()
    known_leaks: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    unsafe_fixes: bool = False
    output_format: str = "full"
    cache_dir: str = ".leakcheck_cache"
    baseline: str = ".leakcheck-baseline.json"


class Located(msgspec.Struct, frozen=True):
    """A configuration with the folder that its paths and patterns are relative to."""

    config: Config
    root: Path
    file: Path | None = None


def find_config(path: Path) -> Located:
    """Return the configuration that counts for a file or folder; the defaults when there is none.

    Raises ConfigError when the file that counts cannot be used.
    """
    folder = path if path.is_dir() else path.parent
    return _find_config(folder.absolute()) or Located(Config(), Path.cwd())


def load_config(path: Path) -> Located:
    """Read the settings from one file, whatever it is called."""
    config = _read(path)
    if config is None:
        raise ConfigError(f"{path}: has no {TABLE} table")
    return Located(config, path.absolute().parent, path)


def settings_of(
    located: Located, layers: tuple[Layer, ...] = (), *, cache: bool = True, jobs: int = 1
) -> Settings:
    """Turn a configuration into what a check is told; `layers` come after the file's own word."""
    from leakcheck.static.checker import Settings
    from leakcheck.static.select import Layer

    config, root = located.config, located.root
    own = Layer(config.select, config.extend_select, config.ignore)
    return Settings(
        root=root,
        layers=(own, *layers),
        per_file_ignores=tuple(config.per_file_ignores.items()),
        rule_sets=tuple(root / folder for folder in config.rule_sets),
        cache_dir=root / config.cache_dir if cache else None,
        jobs=jobs,
    )


def parse_inline(text: str) -> dict[str, Any]:
    """Read a setting from the command line, e.g. 'ignore = ["LK1"]', as plain values."""
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"--config {text!r} is neither a file nor a setting in TOML: {error}"
        ) from None
    _convert(settings, "--config")
    return settings


def overridden(config: Config, settings: dict[str, Any]) -> Config:
    """Return the configuration with some settings (by their names in the file) replaced."""
    current: dict[str, Any] = msgspec.to_builtins(config)
    return _convert(current | settings, "--config")


def forget_files() -> None:
    """Look for configuration files anew: they may have changed."""
    _find_config.cache_clear()


@cache
def _find_config(folder: Path) -> Located | None:
    for name in (*OWN_NAMES, "pyproject.toml"):
        file = folder / name
        if file.is_file():
            config = _read(file)
            if config is not None:
                return Located(config, folder, file)
    return None if folder.parent == folder else _find_config(folder.parent)


def _read(file: Path) -> Config | None:
    """Read a file's settings; None for a pyproject.toml that has nothing to say to us."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {(error.strerror or '').lower()}") from None
    shared = file.name == "pyproject.toml"
    if shared and b"leakcheck" not in raw:
        return None
    try:
        table = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{_shown(file)}: is not TOML: {error}") from None
    tool = table.get("tool")
    if not isinstance(tool, dict) or "leakcheck" not in tool:
        return None if shared else _convert(table, f"{_shown(file)}:")
    others = table.keys() - {"tool"}
    if others and not shared:
        raise ConfigError(f"{_shown(file)}: `{min(others)}` stands outside of {TABLE}")
    return _convert(tool["leakcheck"], f"{_shown(file)}: {TABLE}")


def _convert(settings: object, where: str) -> Config:
    try:
        config = msgspec.convert(settings, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} {_explained(str(error))}") from None
    if config.output_format not in FINDING_FORMATS:
        known = ", ".join(FINDING_FORMATS)
        raise ConfigError(
            f'{where} output-format must be one of {known}, not "{config.output_format}"'
        )
    return config


def _explained(message: str) -> str:
    """Say msgspec's finding in the words of the settings file."""
    if unknown := re.match(r"Object contains unknown field `(.+)`", message):
        names = [field.encode_name for field in msgspec.structs.fields(Config)]
        near = get_close_matches(unknown[1].replace("_", "-"), names, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(names)}"
        return f"has no setting `{unknown[1]}`; {hint}"
    if wrong := re.match(r"Expected `([^`]+)`, got `([^`]+)`(?: - at `\$\.?([^`]*)`)?", message):
        expected = " or ".join(_TYPES.get(name, name) for name in wrong[1].split(" | "))
        got = _TYPES.get(wrong[2], wrong[2])
        return f"{wrong[3] or 'settings'} must be {expected.removesuffix(' or null')}, not {got}"
    return message


def _shown(file: Path) -> str:
    try:
        return file.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return file.as_posix()
