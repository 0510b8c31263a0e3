# SPDX-License-Identifier: MIT
"""Draws how figures grow with the number of disks, as an SVG: one panel for each, both axes logarithmic."""

import html
import math

_WIDTH, _HEIGHT, _COLUMNS = 430, 250, 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 34, 34
_COLOURS = ("#0b5fa5", "#b5651d", "#4d8a4d", "#8a4d7f")
_GREY = "#6b6b6b"


def _decades(values):
    """Return the exponents of the powers of ten around some positive numbers."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _text(x, y, text, anchor="start", colour="#000", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{html.escape(text)}</text>'


class _Panel:
    """One panel: where its axes are, and what a value is on them."""

    def __init__(self, place, lines):
        points = [point for _, line in lines for point in line]
        self._x = place % _COLUMNS * _WIDTH
        self._y = place // _COLUMNS * _HEIGHT
        self._across = _decades([count for count, _ in points])
        self._up = _decades([value for _, value in points])

    def at(self, count, value):
        across = (math.log10(count) - self._across[0]) / (self._across[1] - self._across[0])
        up = (math.log10(value) - self._up[0]) / (self._up[1] - self._up[0])
        x = self._x + _LEFT + across * (_WIDTH - _LEFT - _RIGHT)
        return x, self._y + _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    def frame(self, title):
        parts = [_text(self._x + 8, self._y + 18, title, size=12)]
        low, high = 10 ** self._up[0], 10 ** self._up[1]
        first, last = 10 ** self._across[0], 10 ** self._across[1]
        for exponent in range(self._across[0], self._across[1] + 1):
            x, y = self.at(10**exponent, low)
            parts.append(f'<path d="M{x:.1f} {y:.1f}V{self.at(first, high)[1]:.1f}" stroke="#ddd"/>')
            parts.append(_text(x, y + 16, f"{10**exponent:,g}", "middle", _GREY))
        for exponent in range(self._up[0], self._up[1] + 1):
            x, y = self.at(first, 10**exponent)
            parts.append(f'<path d="M{x:.1f} {y:.1f}H{self.at(last, low)[0]:.1f}" stroke="#ddd"/>')
            parts.append(_text(x - 6, y + 4, f"{10**exponent:,g}", "end", _GREY))
        return parts

    def line(self, number, name, points):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [self.at(*point) for point in points]
        parts = [f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{colour}"/>']
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(_text(self._x + _LEFT + 8, self._y + _TOP + 12 + 14 * number, name, colour=colour))
        return parts


def draw(path, heading, panels):
    """Write an SVG. panels: [(title, [(name of a line, [(disks, value), ...]), ...]), ...]; values of 0 or None are left out."""
    parts = []
    shown = 0
    for title, lines in panels:
        lines = [(name, [(count, value) for count, value in line if value]) for name, line in lines]
        lines = [(name, line) for name, line in lines if line]
        if not lines:
            continue
        panel = _Panel(shown, lines)
        shown += 1
        parts += panel.frame(title)
        for number, (name, line) in enumerate(lines):
            parts += panel.line(number, name, line)
    width, height = _COLUMNS * _WIDTH, math.ceil(shown / _COLUMNS) * _HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -24 {width} {height + 24}" font-family="sans-serif">'
    frame = f'<rect y="-24" width="{width}" height="{height + 24}" fill="#fff"/>'
    lines = ["<!-- SPDX-License-Identifier: MIT -->", head, frame, _text(8, -8, heading, size=12), *parts, "</svg>", ""]
    with open(path, "w", encoding="utf-8") as output:
        output.write("\n".join(lines))
