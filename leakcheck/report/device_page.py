"""Device memory as one HTML page that makes no request: pictures first, then the same as text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from leakcheck import __version__

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="leakcheck $version">
<title>leakcheck: $title</title>
<link rel="icon" href="data:,">
<style>
body { max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif;
  color: #222; background: #fff; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
figure { overflow-x: auto; }
svg { box-sizing: border-box; width: 100%; min-width: 40rem; height: auto; border: 1px solid #ddd; }
pre { padding: 1rem; overflow-x: auto; background: #f6f6f6; font-size: 0.85rem; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818; }
  svg { border-color: #444; }
  pre { background: #222; }
}
</style>
</head>
<body>
<h1>$title</h1>
$figures
<pre tabindex="0" aria-label="as text">$text</pre>
<footer><p>leakcheck $version</p></footer>
</body>
</html>
""")


def render(title: str, pictures: Sequence[str], text: str) -> str:
    """Write the page; `pictures` are SVG texts of our own and stand in it as they are."""
    figures = "\n".join(f'<figure tabindex="0">{picture}</figure>' for picture in pictures)
    return _PAGE.substitute(
        version=__version__, title=escape(title), figures=figures, text=escape(text)
    )
