"""Converts Markdown tables to rows of CSV files: one number a cell, units in the column's name."""
import re

NUMBER = r"-?[\d,]+(?:\.\d+)?"
SPREAD = re.compile(rf"({NUMBER}) / ({NUMBER}) / ({NUMBER})$")
PAIR = re.compile(rf"({NUMBER}) / ({NUMBER})$")
BRACKETS = re.compile(rf"({NUMBER}) \(({NUMBER})\)$")
UNIT = re.compile(rf"({NUMBER}) (MiB|s|ms|%|samples/s)$")


def plain(number):
    """Removes the commas between thousands."""
    return number.replace(",", "") if re.fullmatch(NUMBER, number) else number


def split_column(name, cells):
    """Splits a table's column into CSV columns. Returns their names, and their values in each row."""
    filled = [cell for cell in cells if cell]
    base = re.sub(r" \((min / median / max.*|median)\)$", "", name)

    def taken(pattern, names):
        return names, [
            list(map(plain, match.groups())) if (match := pattern.match(cell)) else [""] * len(names) for cell in cells
        ]

    def all_match(pattern):
        return filled and all(pattern.match(cell) for cell in filled)

    if all_match(SPREAD):
        return taken(SPREAD, [f"{base} {which}" for which in ("min", "median", "max")])
    if all_match(PAIR):
        what, _, sides = base.rpartition(", ")
        return taken(PAIR, [f"{what}, {side}" for side in sides.split(" / ")])
    if all_match(BRACKETS) and (outer := re.match(r"(.*), (\S+) \((\S+)\)$", name)):
        return taken(BRACKETS, [f"{outer[1]}, {outer[2]}", f"{outer[1]}, {outer[3]}"])
    median = " median" if name.endswith("(median)") else ""
    units = {match[2] for cell in filled if (match := UNIT.match(cell))}
    if len(units) == 1 and all_match(UNIT):
        unit = units.pop()
        return [f"{base}{median}" if base.endswith(unit) else f"{base}{median}, {unit}"], \
               [[plain(cell.rpartition(" ")[0])] for cell in cells]
    return [base + median], [[plain(cell)] for cell in cells]


def columns(lines):
    """Returns CSV column names and rows of a Markdown table. Adds the column before to a name that occurs twice."""
    cells = [[cell.strip().replace("`", "").strip("*") for cell in line.strip().strip("|").split("|")]
             for line in lines]
    head, body = cells[0], cells[2:]
    names, rows = [], [[] for _ in body]
    for at, name in enumerate(head):
        unique = name if head.count(name) == 1 else f"{name}, {head[at - 1].partition(' (')[0]}"
        new_names, values = split_column(unique, [row[at] for row in body])
        names += new_names
        for row, value in zip(rows, values):
            row += value
    return names, [dict(zip(names, row)) for row in rows]
