"""Charts: groups of bars and rows of marks, with a scale, units and a legend."""
import math

from svg import Picture

TOP, LEGEND, BOTTOM = 30, 24, 30


def nice_step(most, wanted=5):
    rough = most / wanted
    power = 10 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)


def scale_text(value):
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def legend(picture, entries, y, x=16):
    """`entries`: (words, colour, shape). Widths of words are estimates, because the font is not known."""
    for words, colour, shape in entries:
        picture.dot(x + 5, y - 4, colour, shape)
        picture.text(x + 16, y, words, "muted", style="small")
        x += 34 + 6.3 * len(words)


def axis(picture, left, right, top, bottom, low, high, step, unit):
    """Draws vertical lines at multiples of `step`, with values below. Returns a function from values to positions."""
    def place(value):
        return left + (right - left) * (value - low) / (high - low)

    value = low
    while value <= high + 1e-9:
        picture.line(place(value), top, place(value), bottom)
        picture.text(place(value), bottom + 16,
                     scale_text(value) + (unit if value == low else ""), "muted", "middle", "small")
        value += step
    return place


def bars(title, note, groups, series, unit, width=720, left=200, bar=14, mark=None, high=None):
    """`groups`: (label, {series: (value, text)}), each a block of bars; `series`: {name: colour}. `mark`: a value that
    a line marks, such as 1 for "as fast as"."""
    gap = 12
    used = [max(len(values) * (bar + 2), 16 * len(label.split("\n"))) for label, values in groups]
    top = TOP + (LEGEND if len(series) > 1 else 0) + 8
    height = top + sum(used) + gap * len(used) + BOTTOM + (18 if note else 0)
    picture = Picture(width, height, title)
    picture.text(16, 24, title, style="title")
    if len(series) > 1:
        legend(picture, [(name, colour, "square") for name, colour in series.items()], TOP + LEGEND - 6)
    most = high or 1.12 * max(value for _, values in groups for value, _ in values.values())
    bottom = height - BOTTOM - (18 if note else 0)
    place = axis(picture, left, width - 70, top, bottom, 0, most, nice_step(most), unit)
    y = top + gap / 2
    for (label, values), room in zip(groups, used):
        middle = y + room / 2
        first, y = y, middle - len(values) * (bar + 2) / 2
        lines = label.split("\n")
        for at, words in enumerate(lines):
            picture.text(left - 10, middle + 4 + 15 * (at - (len(lines) - 1) / 2), words, "ink" if at == 0 else "muted",
                         "end", "" if at == 0 else "small")
        for name, (value, text) in values.items():
            picture.rect(left, y, place(value) - left, bar, series[name], radius=2)
            picture.text(place(value) + 6, y + bar - 3, text, style="small halo s-paper")
            y += bar + 2
        y = first + room + gap
    if mark is not None:
        picture.line(place(mark), top, place(mark), bottom, "ink")
    if note:
        picture.text(16, height - 12, note, "muted", style="small")
    return picture


def marks(title, note, rows, series, unit, low, high, width=720, left=210, row=34):
    """`rows`: (label, {series: (value, spread)}). Each value gets a mark, and a line over its spread to both sides.
    `series`: {name: (colour, shape)}."""
    top = TOP + LEGEND + 8
    height = top + row * len(rows) + BOTTOM + (18 if note else 0)
    picture = Picture(width, height, title)
    picture.text(16, 24, title, style="title")
    legend(picture, [(name, *look) for name, look in series.items()], TOP + LEGEND - 6)
    bottom = top + row * len(rows)
    place = axis(picture, left, width - 36, top, bottom, low, high, nice_step(high - low), unit)
    for at, (label, values) in enumerate(rows):
        y = top + row * (at + 0.5)
        picture.text(left - 12, y + 4, label, anchor="end")
        picture.line(place(low), y, place(high), y)
        for name, (value, spread) in values.items():
            colour, shape = series[name]
            if spread:
                picture.line(place(value - spread), y, place(value + spread), y, colour)
            picture.dot(place(value), y, colour, shape)
    if note:
        picture.text(16, height - 12, note, "muted", style="small")
    return picture
