"""Simple drawings as SVG: boxes, arrows and text, readable on light and dark pages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_FONT = "system-ui, -apple-system, Segoe UI, sans-serif"
INK, SUBTLE, LINE = "#1c2430", "#4a5565", "#7b8794"
PAPER, BLUE, GREEN, ORANGE, GREY = "#ffffff", "#dbeafe", "#d9f2e3", "#fdebd3", "#eef1f4"


@dataclass
class Drawing:
    """A drawing of a given size in pixels, with a title for screen readers. Positions are from the top left."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list[str])

    def box(self, left: int, top: int, width: int, height: int, colour: str = GREY) -> None:
        """Draw a box."""
        self.parts.append(
            f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6" fill="{colour}" stroke="{LINE}"/>'
        )

    def text(self, left: int, top: int, words: str, *, size: int = 14, bold: bool = False, colour: str = INK) -> None:
        """Write one line whose baseline is at `top`."""
        self._text(left, top, words, "start", size, bold=bold, colour=colour)

    def labelled(self, left: int, top: int, width: int, height: int, lines: Sequence[str], colour: str = GREY) -> None:
        """Draw a box with centred lines; the first is bold."""
        self.box(left, top, width, height, colour)
        first = top + (height - 18 * len(lines)) // 2 + 14
        for number, line in enumerate(lines):
            shade = SUBTLE if number else INK
            centre = left + width // 2
            self._text(centre, first + 18 * number, line, "middle", 13 if number else 14, bold=not number, colour=shade)

    def arrow(self, start: tuple[int, int], end: tuple[int, int], words: str = "", *, dashed: bool = False) -> None:
        """Draw an arrow, with words above its middle."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" stroke="{INK}" stroke-width="1.5"'
            f'{dash} marker-end="url(#head)"/>'
        )
        if words:
            middle = (start[0] + end[0]) // 2
            self._text(middle, (start[1] + end[1]) // 2 - 7, words, "middle", 13, bold=False, colour=SUBTLE)

    def line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Draw a line without a head."""
        (left, top), (right, bottom) = start, end
        self.parts.append(f'<path d="M{left} {top}L{right} {bottom}" stroke="{INK}" stroke-width="1.5"/>')

    def svg(self) -> str:
        """Return the drawing as an SVG document with nothing that a content-security policy blocks."""
        head = (
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
            f' orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{INK}"/></marker></defs>'
        )
        size = f'width="{self.width}" height="{self.height}"'
        begin = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" {size}>'
        title = f"<title>{escape(self.title)}</title>"
        return "\n".join((begin, title, head, f'<rect {size} rx="8" fill="{PAPER}"/>', *self.parts, "</svg>\n"))

    def _text(self, left: int, top: int, words: str, anchor: str, size: int, *, bold: bool, colour: str) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{left}" y="{top}" text-anchor="{anchor}" font-family="{_FONT}" font-size="{size}"'
            f'{weight} fill="{colour}">{escape(words)}</text>'
        )
