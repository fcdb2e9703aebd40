// Draws every chart of the page from the JSON in #report-data; nothing is fetched.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
  const PALETTE = ["#1f77d0", "#d9480f", "#2b8a3e", "#9c36b5", "#0b7285", "#a61e4d", "#5f6b00", "#5c5f66", "#c2255c"];
  const DARK_PALETTE = ["#74b0ff", "#ff9a5c", "#7fd6a2", "#d9a0ee", "#66d9e8", "#ff9bb8", "#d3dc6a", "#c1c7d0", "#f783ac"];

  const BINARY_STEPS = Array.from({ length: 48 }, (_, power) => 2 ** power);
  const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const HEIGHT = 280, SMALL_HEIGHT = 170;

  // what is drawn is written as in the text of the report; between labels of an axis that are
  // `apart` it has as many digits as tell them apart, as they are
  const digitsOf = (apart) => {
    let digits = 0;
    while (digits < 4 && Math.abs(apart * 10 ** digits - Math.round(apart * 10 ** digits)) > 1e-9) digits += 1;
    return digits;
  };
  const bytes = (value, apart = 0) => {
    let size = Math.abs(value), unit = 0;
    while (size >= 1000 && unit < UNITS.length - 1) { size /= 1024; unit += 1; }
    const usual = size >= 100 || (unit === 0 && Number.isInteger(size)) ? 0 : 1;
    const digits = Math.max(usual, digitsOf(apart / 1024 ** unit));
    return (value < 0 ? "-" : "") + size.toFixed(digits) + " " + UNITS[unit];
  };
  const count = (value, apart = 0) => {
    const whole = Math.abs(value) >= 1000 || Math.abs(value - Math.round(value)) < 0.005;
    const digits = Math.max(whole ? 0 : 2, digitsOf(apart));
    return value.toLocaleString("en", { maximumFractionDigits: digits });
  };
  const writer = (chart) => (chart.unit === "B" ? bytes : count);
  const apartOf = (splits) => (splits && splits.length > 1 ? splits[1] - splits[0] : 0);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // layers lie on each other: an opaque fill keeps the colour that the legend shows
  const faded = (color) => {
    const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const ground = channels(style("--panel"));
    return "rgb(" + channels(color).map((value, at) => Math.round(0.4 * value + 0.6 * ground[at])).join(",") + ")";
  };
  const ownHeight = (chart, index, value, at) => {
    const below = chart.stacked ? chart.series[index + 1] : undefined; // the layers go from the top down
    return below && at != null ? value - below.values[at] : value;
  };

  const shadeWarmup = (chart) => ({
    hooks: {
      [chart.stacked ? "draw" : "drawClear"]: [(plot) => {
        if (!chart.warmup) return;
        const from = plot.valToPos(plot.scales.x.min, "x", true);
        const to = Math.min(plot.valToPos(chart.warmup, "x", true), plot.bbox.left + plot.bbox.width);
        if (to <= from) return;
        const { ctx, bbox } = plot, ratio = devicePixelRatio;
        ctx.fillStyle = dark.matches ? "rgba(255,255,255,.12)" : "rgba(0,0,0,.08)";
        ctx.fillRect(from, bbox.top, to - from, bbox.height);
        if (to >= bbox.left + bbox.width) return;
        ctx.fillStyle = style("--soft");
        ctx.fillRect(to, bbox.top, ratio, bbox.height);
        ctx.font = 11 * ratio + "px system-ui, sans-serif";
        ctx.textBaseline = "bottom";
        ctx.textAlign = "left";
        ctx.fillText("judged \u2192", to + 2 * ratio, bbox.top - 2 * ratio);
      }],
    },
  });

  // without the pointer over it, a chart tells its newest values
  const tellLatest = (plot) => {
    if (plot.cursor.idx != null || !plot.legend) return;
    const read = plot.data.slice(1).map((values) => values.findLastIndex((value) => value != null));
    plot.setLegend({ idx: Math.max(0, ...read) }, false);
  };
  const latest = { hooks: { ready: [tellLatest], setCursor: [tellLatest] } };

  const series = (chart) => {
    const palette = dark.matches ? DARK_PALETTE : PALETTE;
    const write = writer(chart);
    return [
      { label: "step", value: (_, step) => (step == null ? "" : count(step)) },
      ...chart.series.map((each, index) => ({
        label: each.label,
        stroke: each.fit ? style(chart.beside ? "--soft" : "--growing") : palette[index % palette.length],
        width: each.fit ? 2 : 1.5,
        dash: each.fit ? [6, 4] : undefined,
        fill: chart.stacked ? faded(palette[index % palette.length]) : undefined,
        points: { show: false },
        spanGaps: true,
        value: (plot, value, __, at) =>
          value == null ? "\u2013" : write(ownHeight(chart, index, value, at), apartOf(plot.axes[1]._splits)),
      })),
    ];
  };

  const range = (chart) => {
    if (chart.stacked) return { range: (_, low, high) => [0, high * 1.05] };
    if (!chart.small) return {};
    const [low, high] = chart.small, room = (high - low) * 0.05 || 1;
    return { range: [low - room, high + room] };
  };

  const axis = (label) => ({
    label, labelSize: 20, labelGap: 0, labelFont: "12px system-ui, sans-serif", stroke: style("--soft"),
    grid: { stroke: style("--line") }, ticks: { stroke: style("--line") },
  });

  const options = (chart, box) => ({
    width: box.clientWidth,
    height: chart.small ? SMALL_HEIGHT : HEIGHT,
    padding: [18, null, null, null],
    cursor: { sync: { key: "steps" }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: range(chart) },
    legend: { show: !chart.small },
    drawOrder: chart.stacked ? ["series", "axes"] : ["axes", "series"],
    series: series(chart),
    axes: [
      { ...axis("step"), size: 32, incrs: WHOLE_STEPS, values: (_, steps) => steps.map((step) => count(step)) },
      {
        ...axis(chart.unit === "B" ? "memory" : chart.unit || "number"),
        size: 92, incrs: chart.unit === "B" ? BINARY_STEPS : WHOLE_STEPS,
        values: (_, values) => values.map((value) => writer(chart)(value, apartOf(values))),
      },
    ],
    plugins: [shadeWarmup(chart), latest],
  });

  const copied = (button) => {
    const text = document.getElementById("report-text");
    text.closest("details").open = true;
    getSelection().selectAllChildren(text);
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected: copy it";
  };
  document.getElementById("copy").addEventListener("click", (event) => copied(event.target));

  const plots = [];
  const draw = () => {
    for (const each of plots.splice(0)) each.plot.destroy();
    document.querySelectorAll("[data-chart]").forEach((box) => {
      const chart = data.charts[Number(box.dataset.chart)];
      const columns = [chart.steps, ...chart.series.map((each) => each.values)];
      plots.push({ box, chart, plot: new uPlot(options(chart, box), columns, box) });
    });
    window.leakcheckPlots = plots.map((each) => each.plot);
  };
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      for (const each of plots) each.plot.setSize({ width: each.box.clientWidth, height: each.chart.small ? SMALL_HEIGHT : HEIGHT });
    });
  });
  dark.addEventListener("change", draw);
  draw();
})();
