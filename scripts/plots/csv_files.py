"""CSV files of measured figures: read whole, rows replaced by key, written whole or not at all."""
import csv
import io
import os
import tempfile
from pathlib import Path


def read(path):
    """The rows of a CSV file as dictionaries; none where there is no file."""
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def update(path, rows, key):
    """Puts rows in place of those with the same values of the key columns; new columns come last."""
    replaced = {tuple(row[name] for name in key) for row in rows}
    old = read(path)
    kept = [row for row in old if tuple(row[name] for name in key) not in replaced]
    place = next((at for at, row in enumerate(old) if tuple(row[name] for name in key) in replaced), len(old))
    ahead = sum(tuple(row[name] for name in key) not in replaced for row in old[:place])
    write(path, [*kept[:ahead], *rows, *kept[ahead:]])


def write(path, rows):
    """The old file stays whole until the new one is."""
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
