from __future__ import annotations

import pytest

from leakcheck import known
from leakcheck.errors import ConfigError
from leakcheck.known import LeakPattern, affects, recognized, shipped
from leakcheck.model import Holder, KnownLeak, Place, Report, Suspect
from leakcheck.report.terminal import known_text

LEAK = KnownLeak("accelerate", "<1.4.0", "upgrade to 1.4.0 or later", "#3391")
ENTRY = LeakPattern(LEAK, path=r"accelerate/accelerator\.py$", holder=r"`Accelerator\._models`")
SUSPECT = Suspect(
    "tensor",
    "tensors",
    holder=Holder("attribute", "_models", "Accelerator"),
    locations=(Place("/lib/site-packages/accelerate/accelerator.py", 1728, "append(model)"),),
)


def known_in(version: str, monkeypatch, suspect: Suspect = SUSPECT) -> KnownLeak | None:
    monkeypatch.setattr(known, "installed", lambda package: version)
    (found,) = recognized(Report(suspects=(suspect,)), [ENTRY]).suspects
    return found.known


def test_a_leak_of_an_affected_version_is_known(monkeypatch):
    found = known_in("1.3.0", monkeypatch)

    assert found is not None
    assert known_text(found) == (
        "accelerate <1.4.0 (#3391, 1.3.0 is installed); upgrade to 1.4.0 or later"
    )


@pytest.mark.parametrize("version", ["1.4.0", "2.0", ""], ids=["mended", "later", "not installed"])
def test_the_same_leak_of_another_version_is_not(version, monkeypatch):
    assert known_in(version, monkeypatch) is None


def test_another_leak_of_an_affected_version_is_not(monkeypatch):
    other = Suspect("tensor", "tensors", holder=Holder("global", "kept"))

    assert known_in("1.3.0", monkeypatch, other) is None


@pytest.mark.parametrize(
    ("conditions", "version", "holds"),
    [
        ("", "0.1", True),
        ("<1.4.0", "1.4", False),
        ("<1.4.0", "1.4.0rc1", True),
        ("<0.4.0.post1", "0.4.0", True),
        ("<0.4.0.post1", "0.4.0.post1", False),
        (">=1.1.0,<1.4.0", "1.10.2", False),
        (">=1.1.0,<1.4.0", "1.3.8", True),
        (">=1.1.0, <1.4.0", "1.0.5", False),
        ("<=1.15.2", "1.15.2+local", True),
        ("!=2.0", "2.0.0", False),
        (">1.0.dev3", "1.0a1", True),
    ],
)
def test_versions_compare_as_releases_do(conditions, version, holds):
    assert affects(conditions, version) is holds


def test_versions_compare_as_packaging_compares_them():
    version = pytest.importorskip("packaging.version").Version
    some = ["0.9", "1.0.dev1", "1.0a2", "1.0b1", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.1", "2"]

    for one in some:
        for other in some:
            assert affects(f"<{other}", one) == (version(one) < version(other)), (one, other)


def test_what_is_shipped_can_be_read_and_names_its_sources():
    assert [entry.leak.package for entry in shipped()] == [
        "pytorch-ignite",
        "torchmetrics",
        "accelerate",
        "gpytorch",
        "opacus",
        "pytorch-forecasting",
        "numpy",
        "pytorch-lightning",
        "pytorch-lightning",
        "torch",
    ]
    assert all(entry.leak.source and entry.leak.cure for entry in shipped())


GOOD = """
[[leak]]
package = "mine"
affected = "<2"
cure = "upgrade"
source = "https://example.org/1"
match = { code = "append" }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('cure = "upgrade"\n', "", "needs package, affected, cure, source and match"),
        ('"<2"', '"~2"', '"~2" is no condition'),
        ('code = "append"', 'code = "(append"', '"(append" is no pattern'),
        ("code =", "line =", 'no pattern "line" in match'),
        ('"mine"', "1", "package is no text"),
        ("[[leak]]", "[[leak", "Expected"),
    ],
)
def test_an_entry_that_cannot_be_used_is_told_with_its_place(tmp_path, old, new, told):
    file = tmp_path / "known.toml"
    file.write_text(GOOD)
    assert known.read(file)[0].code == "append"
    file.write_text(GOOD.replace(old, new))

    with pytest.raises(ConfigError) as error:
        known.read(file)

    assert str(error.value).startswith(str(file))
    assert told in str(error.value)


def test_leaks_that_a_project_knows_come_before_those_that_are_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(known, "installed", lambda package: "1.0")
    file = tmp_path / "known.toml"
    file.write_text(GOOD.replace("append", "_models").replace("code", "holder"))

    known.use([file])
    found = recognized(Report(suspects=(SUSPECT,))).suspects[0].known
    known.use([])

    assert found == KnownLeak("mine", "<2", "upgrade", "https://example.org/1", "1.0")
    assert recognized(Report(suspects=(SUSPECT,))).suspects[0].known != found
