"""The stored results: one JSON line per cell. If a cell has several lines, the last is valid."""
import json

KEY = ("data", "system", "seed", "final")


def read(path):
    if not path.exists():
        return []
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return list({tuple(line[name] for name in KEY): line for line in lines}.values())


def has(known, data, system, seed, final, settings):
    wanted = (data, system, seed, final, settings)
    return any((*(line[name] for name in KEY), line["settings"]) == wanted for line in known)


def add(path, data, system, seed, final, cell):
    line = {**dict(zip(KEY, (data, system, seed, final))), **cell}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
