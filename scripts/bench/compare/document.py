"""Sections: Markdown for a terminal, rows of CSV files for docs/benchmarks.

A section holds what one part measured on one machine. runs.csv has one row for each section. Each table is one
CSV file for all machines: measuring a part again replaces only that part's rows.
"""
import sys
from pathlib import Path

from compare import tables

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import csv_files  # noqa: E402

KEY = ("machine", "part")


class Section:
    """`facts`: machine and versions; `notes`: how it was measured; `tables`: Markdown lines by file name.

    `key`: the columns that identify a row to replace, for a part that can measure some of its rows alone.
    """

    def __init__(self, title, facts, notes, tables_by_name, key=KEY):
        self.title, self.facts, self.notes, self.tables, self.key = title, facts, notes, tables_by_name, key

    def text(self):
        lines = [f"## {self.title}", "", *(f"* {name}: {value}" for name, value in self.facts.items() if value),
                 *(f"* {note}" for note in self.notes), ""]
        for table in self.tables.values():
            lines += [*table, ""]
        return "\n".join(lines)


def write(path, machine, part, section):
    """Writes to the CSV files in a folder, or the text to a stream such as /dev/stdout."""
    if not path.is_dir():
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(section.text() + "\n")
        return
    key = {"machine": machine, "part": part, "date": section.facts["date"]}
    csv_files.update(path / "runs.csv", [{**key, **section.facts, "method": "; ".join(section.notes).replace("`", "")}],
                     KEY)
    for name, lines in section.tables.items():
        csv_files.update(path / f"{name}.csv", [{**key, **row} for row in tables.columns(lines)[1]], section.key)
