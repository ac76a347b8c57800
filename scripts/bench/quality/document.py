"""docs/quality.md: the table of all results, written from what is kept."""
import statistics
from collections import defaultdict

from quality.data import SETS
from quality.systems import SYSTEMS

BEGIN, END = "<!-- quality.sh writes from here -->", "<!-- to here -->"
PERCENT = {"accuracy", "accuracy_seen", "accuracy_unseen"}
HEADINGS = {"accuracy": "accuracy, %", "f1_macro": "macro F1", "accuracy_seen": "seen merchants, %",
            "accuracy_unseen": "unseen, %", "exact": "exact match", "f1": "F1"}


def mean_and_spread(values, metric):
    values = [100 * value for value in values] if metric in PERCENT else values
    digits = 3 if metric == "f1_macro" else 1
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def metrics_of(data):
    return [*data.metrics, *(["accuracy_seen", "accuracy_unseen"] if data.group else [])]


def seconds_to(value, run):
    """Of the command, until an evaluation in training had this value; the end, if only the exported model has it."""
    share = next((share for share, reached in run["course"] if reached >= value), None)
    return (share or 1) * run["processor_seconds"]


def reaches_peer(data, runs, peers):
    """Mean processor seconds to the mean of Hugging Face's first metric, and their share of its own."""
    if not peers or runs is peers:
        return ""
    metric = data.metrics[0]
    value = statistics.fmean(run[metric] for run in peers)
    if statistics.fmean(run[metric] for run in runs) < value:
        return "not reached"
    if not all("course" in run for run in runs):
        return ""
    seconds = statistics.fmean(seconds_to(value, run) for run in runs)
    return f"{seconds:,.0f} ({seconds / statistics.fmean(run['processor_seconds'] for run in peers):.2f})"


def scored_systems(cells, metrics):
    """The runs of each system that has some, its title and means."""
    for name, system in SYSTEMS.items():
        if runs := cells.get(name):
            yield runs, [system.title, *(mean_and_spread([run[m] for run in runs], m) for m in metrics)]


def test_table(data, cells):
    """Of the models in the table of development rows: what they score on rows that chose nothing."""
    metrics = metrics_of(data)
    yield "| system | " + " | ".join(HEADINGS[m] for m in metrics) + " | seeds |"
    yield "|---" * (len(metrics) + 2) + "|"
    for runs, scored in scored_systems(cells, metrics):
        yield "| " + " | ".join([*scored, str(len(runs))]) + " |"


def table(data, cells):
    metrics = metrics_of(data)
    lines = ["| system | " + " | ".join(HEADINGS[m] for m in metrics) +
             " | seeds | processor seconds | to Hugging Face's result | peak memory |", "|---" * (len(metrics) + 5) + "|"]
    for runs, scored in scored_systems(cells, metrics):
        mean = statistics.fmean(run["processor_seconds"] for run in runs)
        seconds = f"{mean:,.0f}" if mean >= 10 else f"{mean:.1f}"
        adaptation = runs[0].get("adaptation_seconds")
        if adaptation:
            seconds += f" (adapt: {adaptation:,.0f})"
        memory = f"{max(run['memory_mb'] for run in runs):,.0f} MiB"
        reached = reaches_peer(data, runs, cells.get("hugging-face"))
        lines.append("| " + " | ".join([*scored, str(len(runs)), seconds, reached, memory]) + " |")
    return lines


def not_run(data, cells):
    """A sentence that names the systems without a result; additions of one kind alone are no part of it."""
    absent = [system.title for name, system in SYSTEMS.items()
              if system.takes(data) and not system.comes_with and not system.is_extra and not cells.get(name)]
    return f" Not run: {'; '.join(absent)}." if absent else ""


def of_the_same_models(final, development):
    """The runs on test rows whose model, or figures that need none, the table of development rows has."""
    made = {(name, run["seed"], run["settings"]) for name, runs in development.items() for run in runs}
    kept = {name: [run for run in runs if (name, run["seed"], run["settings"]) in made] for name, runs in final.items()}
    return {name: runs for name, runs in kept.items() if runs}


def sections(results):
    grouped = defaultdict(lambda: defaultdict(list))
    for line in results:
        grouped[line["data"], line["final"]][line["system"]].append(line)
    for name, data in SETS.items():
        cells = grouped[name, False]
        if not cells:
            continue
        runs = [run for of_system in cells.values() for run in of_system]
        machines = sorted({run["machine"] for run in runs})
        load = max(run["load"] for run in runs)
        yield [f"## {data.title}", "", f"Development rows; measured on {'; '.join(machines)}; "
               f"load average up to {load}.{not_run(data, cells)}", "", *table(data, cells), ""]
        on_test_rows = of_the_same_models(grouped[name, True], cells)
        if on_test_rows:
            yield ["The same models on the test rows, which chose nothing:", "", *test_table(data, on_test_rows), ""]


def write(path, results):
    """Replaces what is between the marks."""
    text = path.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    body = "\n".join(line for section in sections(results) for line in section)
    path.write_text(f"{text[:begin]}\n\n{body}\n{text[end:]}", encoding="utf-8")
