"""CSV files of measured figures: read whole, rows replaced by key, written whole or not at all."""
import csv
import io
import os
import tempfile
from pathlib import Path


def read(path):
    """Returns the rows of a CSV file as dictionaries; [] if there is no file."""
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def update(path, rows, key):
    """Replaces the rows that have the same values in the key columns. New columns come last."""
    replaced = {tuple(row[name] for name in key) for row in rows}
    old = read(path)
    kept = [row for row in old if tuple(row[name] for name in key) not in replaced]
    place = next((at for at, row in enumerate(old) if tuple(row[name] for name in key) in replaced), len(old))
    ahead = sum(tuple(row[name] for name in key) not in replaced for row in old[:place])
    write(path, [*kept[:ahead], *rows, *kept[ahead:]])


def write(path, rows):
    """Writes a CSV file atomically: the old file stays until the new one is complete."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path = Path(os.path.realpath(path))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.",
                                     delete=False) as file:
        try:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, path.stat().st_mode & 0o777 if path.exists() else 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
