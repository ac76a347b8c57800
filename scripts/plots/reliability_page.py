"""The tables of docs/reliability.md, from the CSV files in docs/reliability."""
from csv_files import read
from pages import table

COUNTS = ("calls", "walked", "exit 0", "exit 3", "exit 4", "exit 5", "killed")
MISTAKES = ("silent differences", "damaged files", "hangs", "other mistakes")


def fuzz_table(rows):
    head = ["target", "executions", "reader's lines covered", "crashes"]
    cells = [(row["target"], f"{int(row['executions']):,}",
              f"{int(row[head[2]]) / int(row[lines]):.0%}" if row[lines := "reader's lines"] else "", row["crashes"])
             for row in rows]
    crashes = [row["crashes"] for row in rows]
    total = sum(int(count) for count in crashes if count.isdigit()) if all(map(str.isdigit, crashes)) else "see above"
    cells.append((f"**all {len(rows)}**", f"{sum(int(row['executions']) for row in rows):,}", "", total))
    return table(head, cells, head[1:])


def faults_table(rows):
    """Returns a table with sums over all kinds of faults for each command. One column counts all wrong outcomes."""
    sums = {}
    for row in rows:
        values = [*(int(row[name]) for name in COUNTS), sum(int(row[name]) for name in MISTAKES)]
        sums[row["command"]] = [sum(pair) for pair in zip(sums.get(row["command"], [0] * len(values)), values)]
    sums["**all**"] = [sum(values) for values in zip(*sums.values())]
    head = ["command", *COUNTS, "mistakes"]
    lines = [(command, *(f"{value:,}" for value in values)) for command, values in sums.items()]
    return table(head, lines, head[1:])


def soak_table(rows):
    head = ["what", "first third", "last third", "change"]
    cells = []
    for row in rows:
        unit = f" {row['unit']}" if row["unit"] else ""
        change = f"{row['change, %']} %" if row["change, %"] else f"at most {row['at most']}"
        cells.append((row["what"], row["first third"] + unit, row["last third"] + unit, change))
    return table(head, cells, head[1:])


def runs_table(rows):
    head = ["kind", "machine", "date", "commit", "summary"]
    return table(head, [[row[name] for name in head] for row in rows])


def escaped(text):
    return text.replace("<", "&lt;")


def findings_table(rows):
    head = ["found by", "what", "was", "is"]
    return table(head, [[
        escaped(cell)
        for cell in (row["by"] + (f", {row['target']}" if row["target"] else ""), row["found"], row["was"], row["is"])
    ] for row in rows])


def libraries_table(rows):
    return table(list(rows[0]),
                 [[f"`{cell}`" if name == "package" else cell for name, cell in row.items()] for row in rows])


def made(docs):
    rows = {
        name: read(docs / "reliability" / f"{name}.csv")
        for name in ("fuzz", "faults", "soak", "runs", "findings", "libraries")
    }
    return {}, {
        "runs": runs_table(rows["runs"]), "fuzz": fuzz_table(rows["fuzz"]), "faults": faults_table(rows["faults"]),
        "soak": soak_table(rows["soak"]), "findings": findings_table(rows["findings"]),
        "libraries": libraries_table(rows["libraries"])
    }
