from __future__ import annotations

from pathlib import Path

import pytest

from leakcheck import config
from leakcheck.config import Config, find_config, load_config, settings_of
from leakcheck.errors import ConfigError
from leakcheck.static.select import Layer


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config.forget_files()


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_count():
    located = find_config(Path("train.py"))

    assert located == config.Located(Config(), Path.cwd())


def test_the_table_of_pyproject_is_read_in_kebab_case():
    write(
        "pyproject.toml",
        """\
[project]
name = "x"
[tool.leakcheck]
select = ["LK1"]
extend-select = ["atexit-method"]
per-file-ignores = { "tests/" = ["LK101"] }
respect-gitignore = false
""",
    )

    located = find_config(Path("train.py"))

    assert located.config == Config(
        select=("LK1",),
        extend_select=("atexit-method",),
        per_file_ignores={"tests/": ("LK101",)},
        respect_gitignore=False,
    )
    assert located.root == Path.cwd()


@pytest.mark.parametrize("name", ["leakcheck.toml", ".leakcheck.toml"])
@pytest.mark.parametrize("text", ['ignore = ["LK1"]', '[tool.leakcheck]\nignore = ["LK1"]'])
def test_an_own_file_holds_the_settings_with_or_without_the_table(name, text):
    write(name, text)

    assert find_config(Path("train.py")).config.ignore == ("LK1",)


def test_the_nearest_file_counts_alone():
    write("leakcheck.toml", 'ignore = ["LK1"]\nexclude = ["a"]')
    write("lib/leakcheck.toml", 'ignore = ["LK2"]')
    write("lib/deep/pyproject.toml", "[project]\nname = 'says nothing of leakcheck'\n")

    located = find_config(Path("lib/deep/train.py"))

    assert (located.config, located.root) == (Config(ignore=("LK2",)), Path("lib").absolute())


def test_a_broken_pyproject_that_does_not_name_us_is_not_our_business():
    write("pyproject.toml", "this is = = no TOML")

    assert find_config(Path("train.py")).config == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select = 5", "[tool.leakcheck] select must be a list, not a whole number"),
        ("exclude = [1]", "[tool.leakcheck] exclude["),
        ("cache-dir = true", "[tool.leakcheck] cache-dir must be a text, not true or false"),
        ("respect-gitignore = 'yes'",
         "[tool.leakcheck] respect-gitignore must be true or false, not a text"),
        ("per-file-ignores = []", "[tool.leakcheck] per-file-ignores must be a table, not a list"),
        ("extend_select = []",
         "[tool.leakcheck] has no setting `extend_select`; did you mean `extend-select`?"),
        ("output-format = 'xml'", "[tool.leakcheck] output-format must be one of full, concise, "
                                  'json, sarif, github, gitlab, junit, markdown, not "xml"'),
        ("select = [", "is not TOML: "),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_is_named(text, message):
    write("pyproject.toml", f"[tool.leakcheck]\n{text}\n")

    with pytest.raises(ConfigError) as error:
        find_config(Path("train.py"))

    assert str(error.value).startswith(f"pyproject.toml: {message}")


def test_a_table_that_is_no_table_is_named():
    write("pyproject.toml", "[tool]\nleakcheck = 3\n")

    with pytest.raises(ConfigError, match=r"^pyproject.toml: \[tool.leakcheck\] settings must be"):
        find_config(Path("train.py"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool = 3\n", "leakcheck.toml: has no setting `tool`; there are select, "),
        ("[tool.ruff]\n", "leakcheck.toml: has no setting `tool`; there are select, "),
        (
            'ignore = ["LK1"]\n[tool.leakcheck]\nselect = []\n',
            "leakcheck.toml: `ignore` stands outside of [tool.leakcheck]",
        ),
    ],
)
def test_nothing_in_a_file_of_our_own_is_passed_over(text, message):
    write("leakcheck.toml", text)

    with pytest.raises(ConfigError) as error:
        find_config(Path("train.py"))

    assert str(error.value).startswith(message)


def test_a_named_file_without_settings_is_told():
    with pytest.raises(ConfigError, match=r"^pyproject\.toml: has no \[tool\.leakcheck\] table$"):
        load_config(write("pyproject.toml", "[project]\nname = 'x'\n"))


def test_folders_are_relative_to_the_file_and_layers_come_after_it():
    write("lib/leakcheck.toml", 'rule-sets = ["ci/rules"]\nselect = ["LK1"]\ncache-dir = ".c"\n')

    told = settings_of(find_config(Path("lib/train.py")), (Layer(ignore=("LK101",)),))

    root = Path("lib").absolute()
    assert told.rule_sets == (root / "ci/rules",)
    assert told.cache_dir == root / ".c"
    assert told.layers == (Layer(select=("LK1",)), Layer(ignore=("LK101",)))
