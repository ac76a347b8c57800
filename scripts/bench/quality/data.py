"""The data sets of the quality table: their files, the rows that are used, and the metrics."""
import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass
class DataSet:
    title: str
    train: str  # below shared/data
    dev: str  # rows on which settings are chosen; empty: every tenth row of train
    test: str = ""  # rows for the final table only; empty: there are none
    texts: tuple = ("text",)
    label: str = "category"
    group: str = ""  # column whose values are seen or unseen in training
    rows: int = 0  # the first N rows are trained on; 0: all
    dev_rows: int = 0
    unlabelled: str = ""  # a file of rows for adapt, which reads only their texts
    metrics: tuple = ("accuracy", "f1_macro")

    @property
    def is_questions(self):
        return self.train.endswith(".json")

    def prepare(self, shared, directory, final):
        """Writes the rows of (train, evaluation) as CSV files: text [, pair], label [, group]. SQuAD stays as it is."""
        source = Path(shared) / "data"
        if self.is_questions:
            return source / self.train, source / self.dev
        train = self.rows_of(source / self.train)
        if self.dev:
            held_out = self.rows_of(source / self.dev)
        else:
            held_out, train = train[::10], [row for i, row in enumerate(train) if i % 10]
        held_out = self.rows_of(source / self.test) if final else held_out[:self.dev_rows or None]
        made = directory / "train.csv", directory / "eval.csv"
        write_rows(made[0], train[:self.rows or None])
        write_rows(made[1], held_out)
        return made

    def rows_of(self, path):
        columns = {"text": self.texts[0], "pair": self.texts[-1], "label": self.label, "group": self.group}
        if len(self.texts) == 1:
            del columns["pair"]
        if not self.group:
            del columns["group"]
        return [{name: row[column] for name, column in columns.items()} for row in read_table(path)]


def read_table(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        if path.suffix == ".tsv":
            return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        return list(csv.DictReader(file))


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def toronto(title, **more):
    return DataSet(title, "toronto/train.csv", "toronto/dev.csv", "toronto/test.csv", group="merchant",
                   unlabelled="toronto/train.csv", **more)


SETS = {
    "toronto-500": toronto("Toronto, 500 rows, 24 categories", rows=500, dev_rows=1000),
    "toronto-4000": toronto("Toronto, 4,000 rows, 24 categories", rows=4000, dev_rows=1000),
    "mrpc": DataSet("MRPC, 3,668 pairs", "mrpc/train.tsv", "mrpc/dev.tsv", texts=("#1 String", "#2 String"),
                    label="Quality"),
    "banking77": DataSet("banking77, 10,003 rows, 77 intents", "banking77/train.csv", "",
                         "banking77/test.csv"),
    "toronto-20000": toronto("Toronto, 20,000 rows, 24 categories", rows=20000),
    "squad-4000": DataSet("SQuAD v1.1, 4,000 questions", "squad/train-v1.1-4000.json", "squad/dev-v1.1.json",
                          metrics=("exact", "f1")),
    "sst2": DataSet("SST-2, 67,349 sentences", "sst2/train.tsv", "sst2/dev.tsv", texts=("sentence",), label="label"),
    "toronto": toronto("Toronto, 100,000 rows, 24 categories"),
    "toronto-gl": toronto("Toronto, 100,000 rows, some 495 accounts", label="gl_category"),
}
for name, data in SETS.items():
    data.name = name
