"""A picture as SVG: rectangles, lines, dots and text, the same bytes for the same calls.

Text stays text, so that a picture can be searched and read aloud. Nothing is measured by a font:
a character is taken to be so and so wide, which is enough to break lines.
"""

from xml.sax.saxutils import escape, quoteattr

INK = "#222222"
PALE = "#666666"
GRID = "#dddddd"
_PAPER = "#ffffff"
_FONT = "Helvetica, Arial, sans-serif"


class Picture:
    """Collects shapes; `text` is the file."""

    def __init__(self, title: str, description: str) -> None:
        self._title = title
        self._description = description
        self._shapes: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, *, fill: str) -> None:
        """Draw a filled rectangle."""
        self._shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{fill}"/>'
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], *, stroke: str) -> None:
        """Draw a thin line."""
        self._shapes.append(
            f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
            f'stroke="{stroke}"/>'
        )

    def dot(self, x: float, y: float, radius: float, *, fill: str, stroke: str = "none") -> None:
        """Draw a dot."""
        self._shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" stroke="{stroke}"/>'
        )

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 12,
        fill: str = INK,
        anchor: str = "start",
        is_bold: bool = False,
    ) -> None:
        """Write one line; `y` is its base."""
        weight = ' font-weight="bold"' if is_bold else ""
        self._shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
            f'text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )

    def text(self, width: float, height: float) -> str:
        """Return the file of a picture of this size."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family={quoteattr(_FONT)} role="img">'
        )
        return "\n".join(
            (
                head,
                f"<title>{escape(self._title)}</title>",
                f"<desc>{escape(self._description)}</desc>",
                f'<rect width="100%" height="100%" fill="{_PAPER}"/>',
                *self._shapes,
                "</svg>\n",
            )
        )
