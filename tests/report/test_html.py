from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leakcheck.model import Holder, Notice, Reason, Report, Sample
from leakcheck.report import render, terminal

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PHONE, DESKTOP = (400, 900), (1400, 1000)


def long_run(report: Report) -> Report:
    samples = tuple(
        Sample(step, step / 100, {"host.rss": 300 << 20 | step, "graph.nodes": 11 * step})
        for step in range(0, 1_000_000, 100)
    )
    return replace(report, samples=samples)


def test_the_page_asks_nothing_of_the_network(growing_run):
    page = render(growing_run, "html")

    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)[^"']*""", page) == []
    assert re.findall(r"@import|url\(\s*['\"]?http|fetch\(|XMLHttpRequest", page) == []


def test_a_million_steps_make_a_page_under_one_megabyte(growing_run):
    assert len(render(long_run(growing_run), "html").encode()) < 1_000_000


def test_text_of_the_program_cannot_break_out_of_the_page(growing_run):
    hostile = "</script><script>alert(1)</script>"
    suspect = replace(
        growing_run.suspects[0],
        what=hostile,
        holder=Holder("local", hostile),
        fix=Reason.of("write", code=hostile),
    )
    samples = tuple(Sample(step, step / 10, {f"{hostile}.allocated": step}) for step in range(9))

    page = render(replace(growing_run, suspects=(suspect,), samples=samples), "html")

    assert "<script>alert" not in page
    assert page.count("</script>") == 3


def test_text_of_the_program_cannot_turn_the_reading_order(growing_run):
    turning = "total\u202eloss"
    samples = tuple(Sample(step, step / 10, {f"{turning}.allocated": step}) for step in range(9))

    page = render(
        replace(
            growing_run,
            suspects=(replace(growing_run.suspects[0], holder=Holder("local", turning)),),
            samples=samples,
        ),
        "html",
    )

    assert r"total\u202eloss" in page
    assert "\u202e" not in page


def test_ranks_are_drawn_beside_each_other(growing_run):
    ranks = tuple(
        replace(growing_run, run=replace(growing_run.run, rank=rank, world_size=2))
        for rank in range(2)
    )

    page = render(replace(growing_run, ranks=ranks), "html")

    assert "rank 0: growing, Autograd graph" in page
    assert "rank 1: growing, Autograd graph" in page
    order = ["<h2>Ranks</h2>", "<h2>Resources</h2>", "<h2>Over the steps"]
    assert sorted(order, key=page.index) == order
    mark = growing_run.suspects[0].fingerprint
    row = '<td class="growing">growing</td><td>1,000</td><td class="reason">graph.nodes +11 a step'
    assert page.count(f"{row}</td><td><code>{mark}</code></td></tr>") == 2


def test_what_stands_between_backticks_is_drawn_as_code(growing_run):
    notice = Notice("note", Reason.of("no-holder", error="`<kept>` grows, as does `b`"))

    page, _, _ = render(replace(growing_run, notices=(notice,)), "html").partition("<details>")

    assert "<code>&lt;kept&gt;</code> grows, as does <code>b</code></p>" in page
    assert "local <code>total_loss</code> in main()" in page
    body = page[page.index("<main>") :]
    assert "`" not in body
    assert "fingerprint" not in body


def test_of_many_ranks_the_growing_ones_are_drawn_and_all_on_one_scale(growing_run):
    calm = tuple(Sample(step, step, {"graph.nodes": 40}) for step in range(0, 1000, 10))
    ranks = tuple(
        replace(
            growing_run,
            run=replace(growing_run.run, rank=rank, world_size=500),
            verdict="growing" if rank == 400 else "steady",
            samples=growing_run.samples if rank == 400 else calm,
            trends=growing_run.trends if rank == 400 else (),
        )
        for rank in range(500)
    )

    page = render(replace(growing_run, ranks=ranks), "html")

    drawn = re.findall(r"<h3>(rank [^<]*)</h3>", page)
    assert drawn[:2] == [
        "rank 400: growing, Autograd graph (Nodes)",
        "rank 0: steady, Autograd graph (Nodes)",
    ]
    assert "468 more ranks are not drawn" in page
    assert set(re.findall(r'"small":(\[[^\]]*\])', page)) == {f"[40,{40 + 11 * 990}]"}
    assert len(page.encode()) < 1_000_000


def test_the_report_as_text_is_there_to_be_copied(growing_run):
    page = render(growing_run, "html")

    assert escape(terminal.render(growing_run)) in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    """Headless Chromium from the system, driven by chromedriver; skipped where either is absent."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync"):
        options.add_argument(f"--{flag}")
    for flag in ("disable-background-networking", "disable-component-update"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    opened = webdriver.Chrome(options=options, service=service)
    yield opened
    opened.quit()


@pytest.fixture
def page(browser: Chrome, growing_run: Report, tmp_path: Path) -> Chrome:
    file = tmp_path / "report.html"
    file.write_text(render(growing_run, "html"), encoding="utf-8")
    browser.set_window_size(*DESKTOP)
    browser.get(file.as_uri())
    return browser


def color_scheme(browser: Chrome, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def test_the_page_renders_its_charts_without_a_console_message(page):
    drawn = page.execute_script("return window.leakcheckPlots.map(p => p.series.length)")

    assert drawn == [3, 2]
    assert page.get_log("browser") == []


def test_dragging_over_a_chart_zooms_all_of_them(page):
    page.execute_script("window.leakcheckPlots[0].setScale('x', {min: 100, max: 200})")

    span = page.execute_script(
        "return new Promise(done => setTimeout(() => "
        "done([window.leakcheckPlots[0].scales.x.min, window.leakcheckPlots[0].scales.x.max])))"
    )
    assert span == [100, 200]


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_is_accessible(page, size, scheme):
    axe_core = pytest.importorskip("axe_core_python.base")
    color_scheme(page, scheme)
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
    )

    overflow = page.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    script = Path(os.fspath(axe_core.AXE_FILE_PATH)).read_text(encoding="utf-8")
    page.execute_script(script)
    violations = page.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done("
        "r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' | '))))"
    )

    assert overflow <= 0
    assert violations == []


def read(browser: Chrome, report: Report, folder: Path) -> Chrome:
    file = folder / "report.html"
    file.write_text(render(report, "html"), encoding="utf-8")
    browser.get(file.as_uri())
    return browser


def test_both_axes_of_every_chart_are_named(page):
    named = page.execute_script(
        "return window.leakcheckPlots.map(plot => plot.axes.map(axis => axis.label))"
    )

    assert named == [["step", "Nodes"], ["step", "memory"]]


def test_what_a_legend_tells_has_the_digits_of_the_axis(browser, growing_run, tmp_path):
    samples = tuple(
        Sample(step, step, {"host.heap": (300 << 20) + (step << 10)}) for step in range(0, 100, 9)
    )

    page = read(browser, replace(growing_run, samples=samples, trends=()), tmp_path)

    labels = page.execute_script("return window.leakcheckPlots[0].axes[1]._values")
    assert len(labels) == len(set(labels))
    digits = max(len(label.split()[0].partition(".")[2]) for label in labels)
    assert legends(page, 0) == ["step 99", f"host.heap {300 + 99 / 1024:.{digits}f} MiB"]


def test_a_chart_writes_numbers_as_the_text_does(browser, growing_run, tmp_path):
    page = read(browser, growing_run, tmp_path)

    assert legends(page, 0) == ["step 990", "graph.nodes 10,930", "graph.nodes +11 a step 10,930"]


def test_a_chart_whose_reading_ended_early_tells_the_last_one(browser, growing_run, tmp_path):
    early = tuple(
        replace(each, readings=each.readings if each.step <= 500 else {"host.heap": 1})
        for each in growing_run.samples
    )

    page = read(browser, replace(growing_run, samples=early, trends=()), tmp_path)

    assert legends(page, 0) == ["step 500", "graph.nodes 5,540"]


def test_only_what_is_judged_is_in_the_colour_of_alarm(browser, growing_run, tmp_path):
    resident = replace(growing_run.trends[0], resource="host.rss", unit="B", per_step=8000)
    report = replace(growing_run, trends=(resident, *growing_run.trends))

    page = read(browser, report, tmp_path)

    alarm, *colors = page.execute_script(
        "return [getComputedStyle(document.documentElement).getPropertyValue('--growing').trim(),"
        "...window.leakcheckPlots.map(plot => plot.series[2].stroke())]"
    )
    assert [color == alarm for color in colors] == [True, False]
    rows = page.execute_script(
        "return [...document.querySelectorAll('.scroll tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText).slice(0, 2))"
    )
    assert rows == [
        ["graph.nodes", "growing"],
        ["tensors", "steady"],
        ["host.rss", "growing, not judged"],
    ]


def legends(page: Chrome, chart: int) -> list[str]:
    return page.execute_script(
        'return [...document.querySelectorAll(`[data-chart="${arguments[0]}"] .u-series`)]'
        ".map(row => [...row.children].map(part => part.innerText).join(' '))",
        chart,
    )


def test_a_stack_tells_each_layer_by_its_own_height(browser, growing_run, tmp_path):
    readings = {"cuda:0.memory.parameters": 3 << 20, "cuda:0.memory.activations": 1 << 20}
    samples = tuple(Sample(step, step, readings) for step in range(0, 100, 10))
    file = tmp_path / "report.html"
    file.write_text(render(replace(growing_run, samples=samples), "html"), encoding="utf-8")

    browser.get(file.as_uri())

    assert legends(browser, 0) == ["step 90", "activations 1.0 MiB", "parameters 3.0 MiB"]


def test_the_report_is_copied_as_text(page):
    button = page.find_element("id", "copy")
    button.click()

    assert button.text == "Copied"
    told = page.execute_script("return getSelection().toString()")
    assert told.startswith("leakcheck: growing: 1 leak in 1,000 steps of train.py")
