"""Pictures as SVG text: shapes and words whose colours follow the light or dark theme."""
from xml.sax.saxutils import escape

FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"
LIGHT = {
    "paper": "#ffffff", "edge": "#d1d9e0", "ink": "#1f2328", "muted": "#59636e", "ours": "#0969da", "ours2": "#54aeff",
    "peer": "#8c959f", "third": "#bf8700", "fourth": "#1a7f37", "fifth": "#8250df", "box": "#f6f8fa",
    "accent": "#ddf4ff"
}
DARK = {
    "paper": "#0d1117", "edge": "#3d444d", "ink": "#f0f6fc", "muted": "#9198a1", "ours": "#4493f8", "ours2": "#1f5aa8",
    "peer": "#7d8590", "third": "#d29922", "fourth": "#3fb950", "fifth": "#ab7df8", "box": "#151b23",
    "accent": "#12263f"
}


def rules(colours):
    return "".join(f".f-{name}{{fill:{value}}}.s-{name}{{stroke:{value}}}" for name, value in colours.items())


STYLE = (
    f"text{{font-family:{FONT};font-size:13px}}.small{{font-size:12px}}.title{{font-size:15px;font-weight:600}}"
    ".bold{font-weight:600}.halo{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}"
    f".line{{fill:none;stroke-width:1.5}}{rules(LIGHT)}"
    f"@media (prefers-color-scheme:dark){{{rules(DARK)}}}")


def number(value):
    return f"{value:.1f}".removesuffix(".0")


class Picture:
    """`title` is for screen readers. The frame makes the picture legible on any background."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []
        self.rect(0.5, 0.5, width - 1, height - 1, "paper", "edge", 6)

    def rect(self, x, y, width, height, fill, stroke="", radius=0):
        edge = f" s-{stroke}" if stroke else ""
        round_ = f' rx="{radius}"' if radius else ""
        self.parts.append(
            f'<rect class="f-{fill}{edge}" x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
            f'height="{number(height)}"{round_}/>')

    def text(self, x, y, words, colour="ink", anchor="start", style=""):
        classes = f"f-{colour} {style}".strip()
        self.parts.append(
            f'<text class="{classes}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, colour="edge"):
        self.parts.append(f'<path class="line s-{colour}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>')

    def arrow(self, points, colour="muted"):
        """Draws a path through the points, with a head at the last. The last segment must be horizontal or vertical."""
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        head = [(x, y), (x - 7 * dx + 4 * dy, y - 7 * dy + 4 * dx), (x - 7 * dx - 4 * dy, y - 7 * dy - 4 * dx)]
        self.parts.append(f'<path class="line s-{colour}" d="{path}"/>')
        self.parts.append(f'<path class="f-{colour}" d="M{"L".join(f"{number(a)} {number(b)}" for a, b in head)}Z"/>')

    def dot(self, x, y, colour, shape="circle", size=5):
        if shape == "circle":
            self.parts.append(f'<circle class="f-{colour}" cx="{number(x)}" cy="{number(y)}" r="{size}"/>')
        elif shape == "square":
            self.rect(x - size + 0.5, y - size + 0.5, 2 * size - 1, 2 * size - 1, colour)
        else:
            half = size + 1
            self.parts.append(
                f'<path class="f-{colour}" d="M{number(x)} {number(y - half)}L{number(x + half)} {number(y)}'
                f'L{number(x)} {number(y + half)}L{number(x - half)} {number(y)}Z"/>')

    def __str__(self):
        label = escape(self.title, {'"': "&quot;"})
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{label}">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n" + "\n".join(self.parts) + "\n</svg>\n")
