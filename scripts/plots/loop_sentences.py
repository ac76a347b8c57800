"""The sentences of docs/quality.md about docs/quality/loop.csv."""


class Figures(dict):
    """Of one data set: value by quantity."""

    def __missing__(self, name):
        return "?"


def label_errors(by_data):
    shown = [f"{figures['average precision']} on {data} (cleanlab, from the same probabilities: "
             f"{figures['average precision, cleanlab']})" for data, figures in by_data.items()]
    seconds = by_data["Toronto-4000"]["processor seconds"]
    return (f"`check --label-errors` ranks rows with planted wrong labels (5 %) with an average precision of "
            f"{' and '.join(shown)}. 4,000 rows take {seconds} s of processor time, baseline included.")


SENTENCES = {"label-errors": label_errors}


def sentences(rows):
    parts = {}
    for row in rows:
        parts.setdefault(row["part"], {}).setdefault(row["data"], Figures())[row["quantity"]] = row["value"]
    return "\n".join(f"* {SENTENCES[part](parts[part])}" for part in SENTENCES if part in parts)
