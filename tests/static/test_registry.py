import pytest

from leakcheck.errors import RuleError
from leakcheck.static import registry

RULE = """
from leakcheck.static.rule import Rule

class Mine(Rule):
    code = "{code}"
    summary = "mine"

    def check(self, module):
        return iter(())
"""


GOOD = RULE.format(code="XY001")


def folder(tmp_path, slug="mine", text=GOOD):
    path = tmp_path / slug
    path.mkdir()
    (path / "rule.py").write_text(text, encoding="utf-8")
    return path


def test_a_users_rule_is_loaded_as_the_built_in_ones_are(tmp_path):
    folder(tmp_path)

    (rule,) = registry.load_rules([tmp_path])

    assert (rule.slug, rule.code, rule.default) == ("mine", "XY001", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import nowhere_to_be_found\n", "ModuleNotFoundError"),
        ("x = 1\n", "found 0"),
        (RULE.format(code="nonsense"), "nonsense"),
        (RULE.format(code="XY001").replace('summary = "mine"', "pass"), "no summary"),
    ],
)
def test_a_broken_rule_folder_is_one_clear_error(tmp_path, text, says):
    path = folder(tmp_path, text=text)

    with pytest.raises(RuleError, match=says) as caught:
        registry.load_rules([tmp_path])

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_rules_may_not_share_a_code(tmp_path):
    folder(tmp_path, "one")
    folder(tmp_path, "two")

    with pytest.raises(RuleError, match='two rules have the code "XY001"'):
        registry.load_rules([tmp_path])


def test_a_slug_is_lower_case_words(tmp_path):
    folder(tmp_path, "Not_A_Slug")

    with pytest.raises(RuleError, match="is no slug"):
        registry.load_rules([tmp_path])


def test_a_missing_rule_set_is_an_error(tmp_path):
    with pytest.raises(RuleError, match="is not a folder"):
        registry.load_rules([tmp_path / "nothing"])
