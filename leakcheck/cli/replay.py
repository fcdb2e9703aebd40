"""`leakcheck replay`: what an allocation trace shows, and what other policies would need."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leakcheck.cli.bounded import bounded_memory
from leakcheck.cli.finite import FiniteRange
from leakcheck.cli.output import emit
from leakcheck.errors import EXIT_CLEAN, EXIT_FOUND, EXIT_UNCLEAR, UsageError
from leakcheck.memory.policies import POLICIES, policies_with
from leakcheck.report import device_page
from leakcheck.units import format_bytes, format_count, parse_size_bytes
from leakcheck.writing import replace_file

if TYPE_CHECKING:
    from leakcheck.memory.policies import Policy
    from leakcheck.memory.rounding import NativeConfig
    from leakcheck.memory.trace import Trace
    from leakcheck.memory.verdict import TraceReport


def _size(_: click.Context, param: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_size_bytes(value)
    except ValueError as error:
        raise UsageError(f"{param.opts[0]}: {error}") from None


@click.command(name="replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--policy", "policies", multiple=True, type=click.Choice(list(POLICIES)), help="Only these."
)
@click.option(
    "--limit", callback=_size, metavar="SIZE", help="Does it fit under this many reserved bytes?"
)
@click.option("--fraction", type=FiniteRange(0, 1, min_open=True), help="A share of --limit.")
@click.option("--max-split", callback=_size, metavar="SIZE", help="max_split_size, e.g. 128MiB.")
@click.option("--roundup", help='roundup_power2_divisions, "4" or "[256:1,512:2,>:8]".')
@click.option(
    "--gc-threshold", type=FiniteRange(), default=0.0, help="Collect above this share of --limit."
)
@click.option(
    "--large-segment", callback=_size, metavar="SIZE", help="large_segment_size, e.g. 64MiB."
)
@click.option("--trace", "names", multiple=True, help="Only these traces of a file with several.")
@click.option("--no-bisect", is_flag=True, help="Do not search for the smallest limit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw the trace into this file.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with the picture.")
def command(file: Path, **options: Any) -> None:
    """Replay FILE, a torch.cuda.memory snapshot or a trace, under allocator policies.

    Says whether live bytes grow at equal phase of the steps (leak), only reserved bytes do
    (fragmentation, with the setting that would cure it), or neither (steady), and the smallest
    limit on reserved bytes that each policy can live with.

    Exits 0 when steady, 1 for a leak, for fragmentation, or when it does not fit under --limit, and
    2 when it could not tell (no steps or too few; the layers of one pass are none) or the file
    cannot be read.
    """
    from leakcheck.memory.snapshot import load
    from leakcheck.memory.verdict import judge

    with bounded_memory(file):
        loaded = load(file)
    traces = [t for t in loaded if not options["names"] or t.name in options["names"]]
    if not traces:
        raise UsageError(f"{file}: no trace named {', '.join(options['names'])}")
    limit = _limit(options)
    chosen = _policies(options)
    reports = [judge(t, chosen, limit, not options["no_bisect"]) for t in traces]
    if options["svg"]:
        replace_file(options["svg"], _picture(traces[0]))
    text = "\n\n".join(_text(*each) for each in zip(reports, traces, strict=True))
    if options["html"]:
        pictures = [_picture(trace) for trace in traces]
        replace_file(options["html"], device_page.render(str(file), pictures, text))
    if options["as_json"]:
        emit(json.dumps({"format": 1, "traces": [asdict(r) for r in reports]}, indent=1))
    else:
        emit(text)
    raise SystemExit(max(_exit_code(report) for report in reports))


def _limit(options: dict[str, Any]) -> int | None:
    limit, fraction = options["limit"], options["fraction"]
    if limit is None and (fraction is not None or options["gc_threshold"]):
        raise UsageError("--fraction and --gc-threshold are shares of --limit; give that too")
    return limit if fraction is None else int(limit * fraction)


def _policies(options: dict[str, Any]) -> dict[str, Policy] | None:
    """The policies asked for, or None for every policy with the recorded settings."""
    config = _config(options)
    if config is None and not options["policies"]:
        return None
    settled = policies_with(config)
    return {name: settled[name] for name in options["policies"] or settled}


def _config(options: dict[str, Any]) -> NativeConfig | None:
    from leakcheck.memory.rounding import NativeConfig, parse_roundup

    given: dict[str, Any] = {
        "max_split_bytes": options["max_split"],
        "gc_threshold": options["gc_threshold"] or None,
        "large_segment_bytes": options["large_segment"],
    }
    try:
        if options["roundup"]:
            given["roundup_divisions"] = parse_roundup(options["roundup"])
        chosen = {key: value for key, value in given.items() if value is not None}
        return NativeConfig(**chosen) if chosen else None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _exit_code(report: TraceReport) -> int:
    if report.verdict in ("leak", "fragmentation") or not report.fits:
        return EXIT_FOUND
    return EXIT_CLEAN if report.verdict == "steady" else EXIT_UNCLEAR


def _text(report: TraceReport, trace: Trace) -> str:
    lines = [*_headline(report), *_verdict_lines(report), "", *_table(report)]
    return "\n".join([*lines, *_peak_lines(trace)])


def _peak_lines(trace: Trace) -> list[str]:
    """What holds most when most is held; nothing for a recording without places."""
    from leakcheck.memory.peak import largest_places

    if not trace.sites:
        return []
    places = largest_places(trace)
    return ["", "at the peak of the live bytes:"] + [
        f"{format_bytes(size):>12}  {place}" for place, size in places
    ]


def _headline(report: TraceReport) -> list[str]:
    steps = len(report.steps.boundaries)
    found = f"{steps} steps by {report.steps.found_by}" if steps else "no steps found"
    lines = [f"{report.name}: {format_count(report.events)} events, {found}"]
    fidelity = report.fidelity
    if fidelity is not None and not fidelity.exact:
        share = f"{fidelity.same_blocks:,} of {fidelity.blocks:,} block addresses"
        lines.append(f"   the recording is reproduced for {share}: read the table as an estimate")
    return lines


def _verdict_lines(report: TraceReport) -> list[str]:
    live, excess = report.live, report.excess
    match report.verdict:
        case "leak":
            rate = f"{format_bytes(live.per_step)} a step"
            line = f"leak: live bytes grow {rate} at equal phase, {live.steps} settled steps"
            return [
                line,
                *(f"   {format_bytes(s.bytes_per_step)} a step: {s.site}" for s in report.grown),
            ]
        case "fragmentation":
            total = format_bytes(excess.total)
            line = f"fragmentation: live bytes stay, reserved outgrow them by {total}"
            none = [] if report.cure else ["   no allocator setting we know cures it"]
            return [line, *none, *_cure_lines(report)]
        case "steady":
            line = f"steady: live bytes at equal phase: {live.reason}, {live.steps} settled steps"
            return [line, *_cure_lines(report)]
    return [f"unclear: {live.reason}", *_cure_lines(report)]


def _cure_lines(report: TraceReport) -> list[str]:
    if report.cure is None:
        return []
    row = report.rows[0]
    above = format_bytes(row.peak_reserved_bytes - row.peak_requested_bytes)
    saved = format_bytes(report.cure.saved_bytes)
    return [f"   reserved peaks {above} above the live bytes; {report.cure.setting} saves {saved}"]


def _table(report: TraceReport) -> list[str]:
    limit = report.limit_bytes
    header = f"{'policy':<12}{'peak reserved':>15}{'peak allocated':>16}{'smallest limit':>16}"
    lines = [header + (f"   under {format_bytes(limit)}" if limit is not None else "")]
    for row in report.rows:
        least = row.smallest_limit_bytes
        cells = (row.peak_reserved_bytes, row.peak_allocated_bytes)
        line = f"{row.policy:<12}{format_bytes(cells[0]):>15}{format_bytes(cells[1]):>16}"
        line += f"{'-' if least is None else format_bytes(least):>16}"
        fits = {None: "", True: "   fits", False: "   does not fit"}[row.fits]
        lines.append(line + fits)
    return lines


def _picture(trace: Trace) -> str:
    from leakcheck.report.picture import trace_svg

    return trace_svg(trace)
