"""Scores of predicted labels, the same for every system."""
from collections import Counter


def accuracy(truth, predicted):
    return sum(t == p for t, p in zip(truth, predicted)) / len(truth) if truth else float("nan")


def f1_macro(truth, predicted):
    """Returns the mean F1 over the labels that occur as truth or prediction, as in scikit-learn."""
    right, true, said = Counter(), Counter(truth), Counter(predicted)
    for t, p in zip(truth, predicted):
        right[t] += t == p
    labels = set(true) | set(said)
    return sum(2 * right[label] / (true[label] + said[label]) for label in labels) / len(labels)


def scores_of(rows, predicted, seen_groups):
    """Returns scores as fractions. Rows have `label` and may have `group`."""
    truth = [row["label"] for row in rows]
    if len(predicted) != len(truth):
        raise ValueError(f"{len(predicted)} predictions of {len(truth)} rows")
    scores = {"accuracy": accuracy(truth, predicted), "f1_macro": f1_macro(truth, predicted)}
    if seen_groups is not None:
        for name, wanted in (("seen", True), ("unseen", False)):
            part = [i for i, row in enumerate(rows) if (row["group"] in seen_groups) == wanted]
            scores[f"accuracy_{name}"] = accuracy([truth[i] for i in part], [predicted[i] for i in part])
            scores[f"rows_{name}"] = len(part)
    return scores
