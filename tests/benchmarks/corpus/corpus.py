"""The corpus of real leaks and look-alikes: write its files from mirrors, score a linter on them.

    python corpus.py extract MIRRORS FILES          # FILES/<id>/before.py and after.py of each case
    python corpus.py score FILES [--args ...]       # each file alone
    python corpus.py repositories MIRRORS           # as a user runs it: whole trees, at each commit
    python corpus.py score FILES --by-rule          # the table in rules/README.md

`--cases unseen.jsonl` takes the leaks that were collected to measure, and not to develop, rules;
so do `held_out.jsonl`, `fresh_graphs.jsonl`, `later_fixes.jsonl` and `fixed.jsonl`.
MIRRORS holds a git directory for each of their repositories, at owner+name. The files are
other people's code: read and lint them, never commit any.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MANIFEST = Path(__file__).with_name("manifest.jsonl")
FIRST = 146  # cases of the first collection; the others came later, and are harder
FILES_A_RUN = 100

Case = dict[str, Any]
Found = Mapping[str, Sequence[dict[str, Any]]]  # path -> findings


def main() -> None:
    """Do what the first argument says."""
    options = _options()
    cases = [json.loads(line) for line in options.cases.read_text().splitlines()]
    if options.do == "extract":
        extract(cases, options.source, options.files)
    elif options.do == "score":
        tell(score_files(cases, options.source, _command(options)), options)
    else:
        tell(score_repositories(cases, options.source, _command(options)), options)


def extract(cases: Sequence[Case], mirrors: Path, out: Path) -> None:
    """Write the labelled state of each case, and the fixed one where a fix is known."""
    missing = {case["repo"] for case in cases if _git_dir(mirrors, case["repo"]) is None}
    for case in cases:
        mirror = _git_dir(mirrors, case["repo"])
        states = (("before.py", case["commit"]), ("after.py", case.get("fix_commit")))
        for name, commit in states if mirror is not None else ():
            shown = commit and _git(mirror, "show", f"{commit}:{case['path']}")
            if shown:
                (out / case["id"]).mkdir(parents=True, exist_ok=True)
                (out / case["id"] / name).write_bytes(shown)
    print(*(f"no mirror: {repo}" for repo in sorted(missing)), sep="\n")


def score_files(
    cases: Sequence[Case], files: Path, command: Sequence[str]
) -> Iterator[tuple[Case, Any]]:
    """Yield each case with its findings, and whether the fixed file is free of one of them."""
    here = [case for case in cases if (files / case["id"] / "before.py").exists()]
    paths = [files / case["id"] / name for case in here for name in ("before.py", "after.py")]
    found = _lint(command, [str(path) for path in paths if path.exists()])
    for case in here:
        before, after = (files / case["id"] / name for name in ("before.py", "after.py"))
        hits = _hits(case, found.get(str(before), ()))
        resolved = None
        if hits and case["label"] == "leak" and after.exists():
            left = {_statement(after, each) for each in found.get(str(after), ())}
            resolved = any(_statement(before, each) not in left for each in hits)
        yield case, (hits, resolved)


def score_repositories(
    cases: Sequence[Case], mirrors: Path, command: Sequence[str]
) -> Iterator[tuple[Case, Any]]:
    """Check each case's file in its repository as it was then; what no mirror has is left out.

    What is found in a file does not depend on which others are named: its project is read anyway.
    """
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case["repo"], case["commit"]].append(case)
    for (repo, commit), group in groups.items():
        mirror = _git_dir(mirrors, repo)
        if mirror is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            clone = Path(folder, repo.partition("/")[2])  # some trees are the package of that name
            _write_tree(mirror, commit, clone)
            (clone / ".git").mkdir(exist_ok=True)  # marks the root of the project
            paths = {case["path"] for case in group if (clone / case["path"]).exists()}
            found = _lint(command, sorted(paths), str(clone))
        for case in group:
            yield case, (_hits(case, found.get(case["path"], ())), None)


def tell(scored: Iterator[tuple[Case, Any]], options: argparse.Namespace) -> None:
    """Print what was found, by rule or by part of the corpus."""
    if options.by_rule:
        report_rules(scored)
    else:
        report(scored, options.verbose)


def report_rules(scored: Iterator[tuple[Case, Any]]) -> None:
    """Print a table: of how many leaks and look-alikes each rule has a finding on the lines."""
    sums: Counter[tuple[str, str]] = Counter()
    for case, (hits, _) in scored:
        sums.update((rule, case["label"]) for rule in {hit["rule"] for hit in hits})
    rules = sorted({rule for rule, _ in sums}, key=lambda rule: (-sums[rule, "leak"], rule))
    print("| rule | leaks found | look-alikes flagged |\n|---|---|---|")
    for rule in rules:
        print(f"| {rule} | {sums[rule, 'leak']} | {sums[rule, 'clean']} |")


def report(scored: Iterator[tuple[Case, Any]], verbose: bool) -> None:
    """Print a line a case, if asked for, and the sums for either part of the corpus."""
    first = {json.loads(line)["id"] for line in MANIFEST.read_text().splitlines()[:FIRST]}
    sums: Counter[tuple[str, ...]] = Counter()
    for case, (hits, resolved) in scored:
        part = case.get("half") or ("first" if case["id"] in first else "new")
        sums[part, case["label"]] += 1
        sums[part, case["label"], "hit"] += bool(hits)
        sums[part, "fixed"] += resolved is not None
        sums[part, "resolved"] += bool(resolved)
        if verbose:
            rules = ", ".join(sorted({hit["rule"] for hit in hits}))
            print(f"{case['label']:5} {case['id']:45} {case['category']:26} {rules}", flush=True)
    for part in sorted({part for part, *_ in sums}):
        leaks, clean = (f"{sums[part, k, 'hit']}/{sums[part, k]}" for k in ("leak", "clean"))
        fixed = f"{sums[part, 'resolved']}/{sums[part, 'fixed']}"
        told = f"leaks found {leaks}, look-alikes flagged {clean}, resolved by the fix {fixed}"
        print(f"{part:9} {told}")


def _lint(command: Sequence[str], paths: Sequence[str], folder: str | None = None) -> Found:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for at in range(0, len(paths), FILES_A_RUN):
        told = [*command, "--output-format", "json", *paths[at : at + FILES_A_RUN]]
        done = subprocess.run(told, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 2 and not done.stdout:
            sys.exit(done.stderr)
        for finding in json.loads(done.stdout)["findings"]:
            found[finding["path"].removeprefix("./")].append(finding)
    return found


def _hits(case: Case, findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = [*case["lines"], *(case.get("also_ok") or ())]
    return [f for f in findings if any(f["line"] <= n <= f["end_line"] for n in lines)]


def _statement(path: Path, finding: dict[str, Any]) -> tuple[str, str]:
    lines = path.read_text(errors="replace").splitlines()[finding["line"] - 1 : finding["end_line"]]
    return finding["rule"], " ".join(" ".join(lines).split())


def _write_tree(mirror: Path, commit: str, folder: Path) -> None:
    listed = _git(mirror, "ls-tree", "-r", "-z", commit).decode(errors="replace")
    entries = [entry.split("\t", 1) for entry in listed.split("\0") if entry.endswith(".py")]
    asked = "".join(f"{meta.split()[2]}\n" for meta, _ in entries).encode()
    text = _git(mirror, "cat-file", "--batch", given=asked)
    at = 0
    for _, path in entries:
        end = text.index(b"\n", at)
        head = text[at:end].split()
        at = end + 1
        if head[-1] != b"missing":
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text[at : at + int(head[2])])
            at += int(head[2]) + 1


def _git_dir(mirrors: Path, repo: str) -> Path | None:
    base = mirrors / repo.replace("/", "+")
    places = (base / "repo" / ".git", base / "repo", base / ".git", base)
    return next((place for place in places if (place / "HEAD").exists()), None)


def _git(mirror: Path, *words: str, given: bytes | None = None) -> bytes:
    told = ["git", "--git-dir", str(mirror), *words]
    return subprocess.run(told, input=given, capture_output=True, check=False).stdout


def _command(options: argparse.Namespace) -> list[str]:
    own = [sys.executable, "-m", "leakcheck", "check", "--isolated", "--no-cache"]
    return [*own, *shlex.split(options.args)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("do", choices=["extract", "score", "repositories"])
    parser.add_argument("source", type=Path, help="mirrors; to score, the files extracted")
    parser.add_argument("files", type=Path, nargs="?", help="where `extract` writes")
    parser.add_argument("--args", default="", help='options of the check: "--select ALL"')
    parser.add_argument("--cases", type=Path, default=MANIFEST, help="a manifest of cases")
    parser.add_argument("--verbose", action="store_true", help="a line a case")
    parser.add_argument("--by-rule", action="store_true", help="a line a rule")
    return parser.parse_args()


if __name__ == "__main__":
    main()
