"""The files around the package name only what there is: workflow, hooks, templates, guides."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import click
import pytest

from leakcheck.cli import COMMANDS

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *TEMPLATES]

pytestmark = pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="needs a checkout")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def release() -> dict[Any, Any]:
    return read(ROOT / ".github" / "workflows" / "release.yml")


def steps_of(job: dict[str, Any], key: str) -> list[str]:
    return [step[key] for step in job["steps"] if key in step]


def test_a_release_begins_with_a_tag_and_with_nothing_else(release):
    # YAML 1.1 takes the word "on" for true
    assert release[True] == {"push": {"tags": ["v*"]}}


def test_nothing_is_published_that_was_not_checked_and_built(release):
    jobs = release["jobs"]

    assert list(jobs) == ["check", "build", "publish"]
    assert jobs["publish"]["needs"] == ["check", "build"]
    assert steps_of(jobs["check"], "run") == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert "python -m build" in steps_of(jobs["build"], "run")


def test_what_was_built_is_what_is_published(release):
    sent = [step.get("with") for step in release["jobs"]["build"]["steps"]][-1]
    taken = release["jobs"]["publish"]["steps"][0]["with"]

    assert (sent["name"], sent["path"]) == (taken["name"], taken["path"])


def test_publishing_needs_no_secret_and_no_other_job_may_publish(release):
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    rights = {name: job.get("permissions") for name, job in release["jobs"].items()}

    assert "secrets." not in text
    assert release["permissions"] == {"contents": "read"}
    assert rights == {"check": None, "build": None, "publish": {"id-token": "write"}}
    assert release["jobs"]["publish"]["environment"] == "pypi"
    assert steps_of(release["jobs"]["publish"], "uses")[-1].startswith(
        "pypa/gh-action-pypi-publish@"
    )


def test_the_hook_on_ourselves_is_the_one_that_we_offer():
    offered = {hook["id"]: hook for hook in read(ROOT / ".pre-commit-hooks.yaml")}
    ours = {
        hook["id"]: hook
        for repo in read(ROOT / ".pre-commit-config.yaml")["repos"]
        for hook in repo["hooks"]
    }

    same = ("entry", "types_or", "require_serial")
    assert [ours["leakcheck"][key] for key in same] == [offered["leakcheck"][key] for key in same]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_asks_at_least_for_what_shows_the_fault(path):
    template = read(path)
    questions = template["body"]
    ids = [question["id"] for question in questions]

    assert {"name", "description", "labels", "body"} == set(template)
    assert len(set(ids)) == len(ids)
    assert all(question["attributes"]["label"] for question in questions)
    assert any(question.get("validations") == {"required": True} for question in questions)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_names_only_commands_and_options_that_there_are(path):
    spans = re.findall(r"`([^`\n]*)`", path.read_text(encoding="utf-8"))
    commands = [span.split()[1] for span in spans if re.match(r"leakcheck [a-z]", span)]
    below = [import_module(f"leakcheck.cli.{name}").command for name in COMMANDS]
    below += [
        sub for each in below if isinstance(each, click.Group) for sub in each.commands.values()
    ]
    known = set(chain.from_iterable(param.opts for each in below for param in each.params))
    options = [o for s in spans if s.startswith("leakcheck") for o in re.findall(r"--[a-z-]+", s)]

    assert set(commands) <= set(COMMANDS)
    assert set(options) <= known | {"--help", "--version"}


def test_the_guide_names_only_files_that_there_are():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:leakcheck|tests|rules|examples|\.ci|\.github)/[\w./-]*)`", page)
    named = [name for name in named if "NAME" not in name and "my-rule" not in name]

    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_guide_names_only_tables_that_there_are():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`_?([A-Z][A-Z_]{3,})`", page)) - {"NAME"}
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "leakcheck").rglob("*.py"))

    assert len(named) > 8
    assert [name for name in named if not re.search(rf"(?m)^_?{name}\b.* = ", sources)] == []


def test_the_picture_in_the_guide_names_only_packages_that_there_are():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = page.partition("## The architecture")[2].split("```")[1]

    within = (".", "runtime", "static")
    folders = (ROOT / "leakcheck" / each for each in within)
    packages = {init.parent.name for each in folders for init in each.glob("*/__init__.py")}
    named = set(re.findall(r"\b([a-z]+)/ ", picture))
    assert named <= packages
    assert {"static", "runtime", "report", "memory"} <= named
