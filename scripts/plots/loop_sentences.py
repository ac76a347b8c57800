"""Makes the sentences of docs/quality.md about the figures in docs/quality/loop.csv."""


class Figures(dict):
    """The figures of one data set: values by quantity; "?" for a missing one."""

    def __missing__(self, name):
        return "?"


def label_errors(by_data):
    shown = [f"{figures['average precision']} on {data} (cleanlab, from the same probabilities: "
             f"{figures['average precision, cleanlab']})" for data, figures in by_data.items()]
    seconds = by_data["Toronto-4000"]["processor seconds"]
    return (f"`check --label-errors` ranks rows with planted wrong labels (5 %) with an average precision of "
            f"{' and '.join(shown)}. 4,000 rows take {seconds} s of processor time, baseline included.")


def promise(by_data):
    shown = [f"with {data.split(', ', 1)[1]} it was broken in {figures['broken, %']} % of {int(figures['splits']):,} random "
             f"splits, and {figures['coverage, %']} % of the labels were automatic (best threshold: "
             f"{figures['best coverage, %']} %)" for data, figures in by_data.items()]
    return (f"`evaluate --max-error 0.05 --confidence 0.95`, on Toronto rows with a model of 4,000 rows: "
            f"{'; '.join(shown)}.")


def explain(by_data):
    figures = by_data["Toronto"]
    return (f"`predict --explain` with MiniLM takes {figures['times the prediction']} times the processor time of the "
            f"prediction for texts of {figures['words a row']} words on average: "
            f"{figures['rows a processor second']} rows a processor second.")


def next_rows(by_data):
    first = next(iter(by_data.values()))
    shown = [f"{data} {figures['chosen, %']} % ({figures['random, %']} %, {figures['more random, %']} %)"
             for data, figures in by_data.items()]
    return (f"Accuracy after three rounds of `next --rows 200` from 500 random rows, beside {first['rows']} and "
            f"{first['more rows']} random rows: {', '.join(shown)}; three seeds, the encoder frozen.")


def columns(by_data):
    """Gives the accuracy of the mix without columns, then with each choice of columns."""
    mixed = ": mixed, %"
    shown = []
    for data, figures in by_data.items():
        values = {name.removesuffix(mixed): value for name, value in figures.items() if name.endswith(mixed)}
        without = values.pop("none", "?")
        shown.append(f"{data} {without} % without, {', '.join(f'{value} % with {name}' for name, value in values.items())}")
    return (f"Columns beside the text, accuracy of the mix of `--recipe quick`, 4,000 rows: {'; '.join(shown)}. Debits and "
            f"credits are made: half of the rows get a negative amount, and their label is another.")


def drift(by_data):
    kinds = [figures for figures in by_data.values() if "nights" in figures]
    most = max(int(value) for figures in kinds for name, value in figures.items() if name.startswith("false alarms"))
    other = min(int(figures["another kind noticed, 100 rows, %"]) for figures in kinds)
    noticed = [int(figures["a fifth noticed, 500 rows, %"]) for figures in by_data.values() if "nights" not in figures]
    return (f"Of 1,000 nights of 100, 500 or 2,000 rows like those of training ({', '.join(list(by_data)[:len(kinds)])}) "
            f"`predict` says of at most {most} that they differ; with other data of {other} %, with a fifth of 500 rows in one "
            f"of {len(noticed)} categories that training lacked of {min(noticed)} %.")


def names(by_data):
    """Gives accuracies by rows a label: quick with label names and without, then auto."""
    figures = by_data["banking77"]
    shown = []
    for rows in (1, 3, 5, 10):
        quick, auto = ([figures[f"{rows} a label: {recipe} {kind}, %"] for kind in ("with names", "without")]
                       for recipe in ("quick", "auto"))
        shown.append(f"{rows} a label {quick[0]} % (without {quick[1]} %), `auto` {auto[0]} % ({auto[1]} %)")
    return f"Label names as samples, accuracy of `--recipe quick` on 1,000 rows of banking77: {'; '.join(shown)}; three seeds."


SENTENCES = {"label-errors": label_errors, "promise": promise, "explain": explain, "next": next_rows,
             "columns": columns, "drift": drift, "names": names}


def sentences(rows):
    parts = {}
    for row in rows:
        parts.setdefault(row["part"], {}).setdefault(row["data"], Figures())[row["quantity"]] = row["value"]
    return "\n".join(f"* {SENTENCES[part](parts[part])}" for part in SENTENCES if part in parts)
