"""Writes docs/quality/results.csv: means and spreads of the stored results."""
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from quality.data import SETS
from quality.systems import SYSTEMS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plots"))
import csv_files  # noqa: E402

PERCENT = {"accuracy", "accuracy_seen", "accuracy_unseen"}
HEADINGS = {"accuracy": "accuracy, %", "f1_macro": "macro F1", "accuracy_seen": "seen merchants, %",
            "accuracy_unseen": "unseen merchants, %", "exact": "exact match, %", "f1": "F1, %"}
SCORES = [name for heading in HEADINGS.values() for name in (heading, f"{heading} sd")]
COLUMNS = [
    "data", "title", "rows", "system", "what", *SCORES, "seeds", "processor seconds", "adapt, processor seconds",
    "reaches Hugging Face", "seconds to Hugging Face's result", "share of Hugging Face's seconds", "peak memory, MiB", "machines", "load up to"
]


def metrics_of(data):
    return [*data.metrics, *(["accuracy_seen", "accuracy_unseen"] if data.group else [])]


def scores(data, runs):
    """Yields the mean of each metric and, for several seeds, its standard deviation."""
    for metric in metrics_of(data):
        values = [run[metric] * (100 if metric in PERCENT else 1) for run in runs]
        digits = 3 if metric == "f1_macro" else 1
        yield HEADINGS[metric], f"{statistics.fmean(values):.{digits}f}"
        yield f"{HEADINGS[metric]} sd", f"{statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""


def seconds_to(value, run):
    """Returns the processor seconds until an evaluation during training reached `value`, or all of them if none did."""
    share = next((share for share, reached in run["course"] if reached >= value), None)
    return (share or 1) * run["processor_seconds"]


def beside_peer(data, runs, peers):
    """Returns columns on whether the runs reach Hugging Face's mean, and after how many processor seconds."""
    if not peers or runs is peers:
        return {}
    metric = data.metrics[0]
    value = statistics.fmean(run[metric] for run in peers)
    if statistics.fmean(run[metric] for run in runs) < value:
        return {"reaches Hugging Face": "no"}
    if not all("course" in run for run in runs):
        return {"reaches Hugging Face": "yes"}
    seconds = statistics.fmean(seconds_to(value, run) for run in runs)
    share = seconds / statistics.fmean(run["processor_seconds"] for run in peers)
    return {"reaches Hugging Face": "yes", "seconds to Hugging Face's result": f"{seconds:.0f}",
            "share of Hugging Face's seconds": f"{share:.2f}"}


def cost(runs):
    mean = statistics.fmean(run["processor_seconds"] for run in runs)
    adaptation = runs[0].get("adaptation_seconds")
    return {"processor seconds": f"{mean:.0f}" if mean >= 10 else f"{mean:.1f}",
            "adapt, processor seconds": f"{adaptation:.0f}" if adaptation else "",
            "peak memory, MiB": f"{max(run['memory_mb'] for run in runs):.0f}"}


def of_the_same_models(final, development):
    """Returns the runs on test rows whose model has the same settings as one of the runs on development rows."""
    made = {(name, run["seed"], run["settings"]) for name, runs in development.items() for run in runs}
    kept = {name: [run for run in runs if (name, run["seed"], run["settings"]) in made] for name, runs in final.items()}
    return {name: runs for name, runs in kept.items() if runs}


def rows_of(results):
    grouped = defaultdict(lambda: defaultdict(list))
    for line in results:
        grouped[line["data"], line["final"]][line["system"]].append(line)
    for name, data in SETS.items():
        development = grouped[name, False]
        final = of_the_same_models(grouped[name, True], development)
        for kind, cells in (("development", development), ("test", final)):
            for system in (system for system in SYSTEMS if cells.get(system)):
                runs = cells[system]
                row = {"data": name, "title": data.title, "rows": kind, "system": system,
                       "what": SYSTEMS[system].title.replace("`", ""), **dict(scores(data, runs)), "seeds": len(runs)}
                if kind == "development":
                    row |= cost(runs) | beside_peer(data, runs, cells.get("hugging-face"))
                yield row | {"machines": "; ".join(sorted({run["machine"] for run in runs})),
                             "load up to": max(run["load"] for run in runs)}


def write(path, results):
    csv_files.write(path, [{name: row.get(name, "") for name in COLUMNS} for row in rows_of(results)])
