"""`leakcheck report`: read recordings, merge the ranks, write the report in any format."""

from __future__ import annotations

from pathlib import Path

import click

from leakcheck.cli.output import emit, wants_color
from leakcheck.report import RUN_FORMATS
from leakcheck.writing import replace_file


@click.command("report")
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output-format",
    type=click.Choice(RUN_FORMATS),
    default="text",
    show_default=True,
    help="How to write the report.",
)
@click.option("--output-file", type=click.Path(path_type=Path), help="Write there, not to stdout.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the HTML page there too.")
@click.option("--svg", type=click.Path(path_type=Path), help="Write the plot there too.")
@click.option("--png", type=click.Path(path_type=Path), help="Write the plot there by matplotlib.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the verdict.")
def command(
    recordings: tuple[Path, ...],
    output_format: str,
    output_file: Path | None,
    html: Path | None,
    svg: Path | None,
    png: Path | None,
    exit_zero: bool,
) -> None:
    """Report on RECORDINGS: files that `leakcheck run --record` wrote, or their folder.

    Exit status: 0 steady, 1 growing, 2 unclear or not readable.
    """
    from leakcheck.report import render
    from leakcheck.report.terminal import render as render_text
    from leakcheck.runtime.merge import merge
    from leakcheck.runtime.recording import Recording, read_recording, read_recordings

    read: list[Recording] = []
    for path in recordings:
        read += read_recordings(path) if path.is_dir() else [read_recording(path)]
    report = merge(read)
    if html is not None:
        replace_file(html, render(report, "html") + "\n")
    if svg is not None:
        replace_file(svg, render(report, "svg") + "\n")
    if png is not None:
        from leakcheck.report.png import draw

        replace_file(png, draw(report))
    color = output_file is None and wants_color("auto")
    if output_format == "text":
        text = render_text(report, color=color)
    else:
        text = render(report, output_format)
    emit(text, None if output_file is None else str(output_file), color=color)
    raise SystemExit(0 if exit_zero else report.exit_code)
