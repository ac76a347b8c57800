"""The plots and tables of docs/quality.md, from the CSV files in docs/quality."""
from charts import bars, marks
from csv_files import read
from loop_sentences import sentences
from pages import table

LOOKS = {
    "linear n-grams": ("third", "diamond"), "Hugging Face Trainer": ("peer", "square"), "finetune": ("ours", "circle"),
    "finetune after adapt": ("fourth", "circle")
}
SYSTEMS = {"ngrams": "linear n-grams", "hugging-face": "Hugging Face Trainer", "quick": "`--recipe quick`",
           "auto": "finetune", "auto-adapted": "finetune after adapt"}  # the plot shows only those in LOOKS
SHORT = {
    "toronto-500": "Toronto, 500 rows", "toronto-4000": "Toronto, 4,000 rows", "toronto-20000": "Toronto, 20,000 rows",
    "toronto": "Toronto, 100,000 rows", "toronto-gl": "Toronto, 495 accounts", "banking77": "banking77",
    "mrpc": "MRPC, pairs", "sst2": "SST-2", "squad-4000": "SQuAD, 4,000 questions"
}


def score(row):
    """Returns a row's first metric and its standard deviation over seeds, as text."""
    name = "F1, %" if row["data"] == "squad-4000" else "accuracy, %"
    return row[name], row[f"{name} sd"]


def with_spread(value, spread):
    return f"{value} ± {spread}" if spread else value


def of_kind(rows, kind):
    """Returns {data: {system: row}} of the rows of this kind."""
    found = {}
    for row in rows:
        if row["rows"] == kind:
            found.setdefault(row["data"], {})[row["system"]] = row
    return {data: found[data] for data in SHORT if data in found}


def accuracy(rows):
    shown = []
    for data, systems in of_kind(rows, "development").items():
        values = {}
        for system, name in SYSTEMS.items():
            if system in systems and name in LOOKS:
                value, spread = score(systems[system])
                values[name] = float(value), float(spread or 0)
        shown.append((SHORT[data], values))
    return marks("Accuracy on development rows, % (SQuAD: F1)",
                 "A line through a mark is the standard deviation over three seeds.", shown, LOOKS, " %", 50, 100)


def time_to_peer(rows):
    groups = []
    for data, systems in of_kind(rows, "development").items():
        share = systems.get("auto-alone", systems["auto"])["share of Hugging Face's seconds"]
        if share:
            groups.append((SHORT[data], {"finetune": (100 * float(share), f"{100 * float(share):.0f} %")}))
    return bars("Processor time until Trainer's accuracy is reached, % of Trainer's own",
                "Without n-grams.",
                groups, {"finetune": "ours"},
                " %",
                bar=16,
                high=44)


def accuracy_table(rows):
    head = ["data", "rows", *SYSTEMS.values(), "seeds"]
    lines = []
    for kind in ("development", "test"):
        for data, systems in of_kind(rows, kind).items():
            cells = [with_spread(*score(systems[system])) if system in systems else "" for system in SYSTEMS]
            lines.append((data, SHORT[data], kind, *cells, systems["auto"]["seeds"]))
    lines.sort(key=lambda line: (list(SHORT).index(line[0]), line[2]))
    return table(head, [line[1:] for line in lines], head[2:])


def f1_table(rows):
    head = ["data", *(f"macro F1, {name}" for name in SYSTEMS.values())]
    lines = []
    for data, systems in of_kind(rows, "development").items():
        cells = [with_spread(systems[system]["macro F1"], systems[system]["macro F1 sd"]) if system in systems else ""
                 for system in SYSTEMS]
        if any(cells):
            lines.append((SHORT[data], *cells))
    return table(head, lines, head[1:])


def cost_table(rows):
    sides = {"Trainer": "hugging-face", "`quick`": "quick", "finetune": "auto"}
    quantities = {"processor seconds": "processor seconds", "memory, MiB": "peak memory, MiB"}
    head = ["data", *(f"{quantity}, {side}" for quantity in quantities for side in sides)]
    lines = []
    for data, systems in of_kind(rows, "development").items():
        cells = [f"{float(systems[system][column]):,.0f}" if system in systems else ""
                 for column in quantities.values() for system in sides.values()]
        lines.append((SHORT[data], *cells))
    return table(head, lines, head[1:])


def encoders_table(rows):
    head = ["architecture", "pretraining, processor s", "accuracy, transformers, %", "accuracy, finetune, %",
            "processor s, transformers", "processor s, finetune", "seeds"]
    lines = []
    for row in rows:
        scores = [with_spread(row[f"accuracy of {name}, %"], row[f"accuracy of {name}, % sd"])
                  for name in ("transformers", "finetune")]
        lines.append((row["architecture"], row["pretraining, processor seconds"], *scores,
                      *(row[f"processor seconds of {name}"] for name in ("transformers", "finetune")), row["seeds"]))
    return table(head, lines, head[1:])


def choices_table(choices):
    groups = {}
    for row in choices:
        if row["quantity"] == "accuracy, %":
            key = row["choice"], row["data"] + (", with n-grams" if row["with n-grams"] == "yes" else "")
            groups.setdefault(key, []).append(f"{row['setting']}: {with_spread(row['value'], row['sd'])}")
    rows, last = [], None
    for (choice, data), cells in groups.items():
        rows.append((choice if choice != last else "", data, "; ".join(cells)))
        last = choice
    return table(["choice", "data", "accuracy, %"], rows)


def made(docs):
    rows = read(docs / "quality" / "results.csv")
    pictures = {"quality": accuracy(rows), "quality-time": time_to_peer(rows)}
    return pictures, {"accuracy": accuracy_table(rows), "f1": f1_table(rows), "cost": cost_table(rows),
                      "encoders": encoders_table(read(docs / "quality" / "encoders.csv")),
                      "choices": choices_table(read(docs / "quality" / "choices.csv")),
                      "loop": sentences(read(docs / "quality" / "loop.csv"))}
