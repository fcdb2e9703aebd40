"""The table of words, and what a user's rule set adds to it."""

from __future__ import annotations

import pytest

from leakcheck.errors import RuleError
from leakcheck.source import words
from leakcheck.static.registry import load_rules


@pytest.fixture
def own_tables(monkeypatch):
    """Let a test add words for itself alone."""
    tables = {table: dict(lists) for table, lists in words._tables().items()}
    monkeypatch.setattr(words, "_tables", lambda: tables)


@pytest.mark.parametrize("name", ["drop_oldest", "DropOldest", "dropOldest", "_drop", "drop2"])
def test_a_name_says_what_one_of_its_words_says(name):
    assert words.says(name, "takes")


@pytest.mark.parametrize("name", ["droplet", "backdrop", "", "_"])
def test_a_part_of_a_word_says_nothing(name):
    assert not words.says(name, "takes")


def test_a_rule_set_adds_words(own_tables, tmp_path):
    (tmp_path / "verbs.toml").write_text('[methods]\nadd = ["deposit"]\n')
    assert "deposit" not in words.words("methods", "add")

    words.add_from(tmp_path)

    assert {"deposit", "append"} <= words.words("methods", "add")


def test_a_pattern_knows_the_words_that_a_rule_set_added(own_tables, tmp_path):
    asks = words.Pattern(r"^(<networks>|<other_networks>)$")
    assert asks.match("model")
    assert not asks.match("sensei")

    (tmp_path / "verbs.toml").write_text('[identifiers]\nnetworks = ["sensei"]\n')
    words.add_from(tmp_path)

    assert asks.match("sensei")
    words._compiled.cache_clear()


def test_a_word_in_a_pattern_is_no_regular_expression(own_tables, tmp_path):
    (tmp_path / "verbs.toml").write_text('[identifiers]\nnetworks = [".*"]\n')
    words.add_from(tmp_path)

    assert not words.Pattern(r"^(<networks>)$").search("optimizer")
    words._compiled.cache_clear()


def test_rules_bring_their_words(own_tables, tmp_path):
    (tmp_path / "verbs.toml").write_text('[methods]\nadd = ["deposit"]\n')

    assert load_rules((tmp_path,)) == ()
    assert "deposit" in words.words("methods", "add")


def test_a_rule_set_need_not_have_any(own_tables, tmp_path):
    before = words.words("methods", "add")
    words.add_from(tmp_path)

    assert words.words("methods", "add") == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[methods]\nadds = []\n", "there is no list `adds` in [methods]"),
        ("[verbs]\nadd = []\n", "there is no list `add` in [verbs]"),
        ('[methods]\nadd = "deposit"\n', "`add` in [methods] is no list of words"),
        ("methods = 3\n", "`methods` is no table"),
        ("[methods\n", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_file(own_tables, tmp_path, text, message):
    (tmp_path / "verbs.toml").write_text(text)

    with pytest.raises(RuleError) as raised:
        words.add_from(tmp_path)

    assert str(raised.value).startswith(f"{tmp_path / 'verbs.toml'}: {message}")
