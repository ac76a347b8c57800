"""The works to measure (a model on data), and the sides that are measured in turn."""
import statistics


class Work:
    def __init__(self, name, title, model, kind, batch_size):
        self.name, self.title, self.model, self.kind, self.batch_size = name, title, model, kind, batch_size


WORKS = [
    Work("minilm-bank", "MiniLM-L6, bank text", "minilm", "bank", 32),
    Work("minilm-squad", "MiniLM-L6, SQuAD 384", "minilm", "squad", 8),
    Work("base-bank", "BERT-base shape, bank text", "base", "bank", 32),
    Work("base-squad", "BERT-base shape, SQuAD 384", "base", "squad", 8),
]


class Side:
    def __init__(self, title, ours, precision, padding=None, compiled=False):
        self.title, self.ours, self.precision, self.padding, self.compiled = title, ours, precision, padding, compiled


SIDES = {
    "fp32": Side("finetune fp32", True, "fp32"),
    "bf16": Side("finetune bf16", True, "bf16"),
    "hf-fp32": Side("HF fp32, best setting", False, "fp32", "group"),
    "hf-bf16": Side("HF bf16, best setting", False, "bf16", "group"),
    "hf-default": Side("HF fp32, default setting", False, "fp32", "max"),
}


def faster_peer(results, key):
    """Returns the peer's faster side, fp32 or bf16, by the median of `key`; None if neither ran."""
    names = [name for name in ("hf-fp32", "hf-bf16") if results.get(name)]
    return max(names, key=lambda name: median(results[name], key), default=None)


def median(results, key):
    return statistics.median(result[key] for result in results)


def in_turn(names, count, run_ours, run_peer, report, warm_up=False, known=SIDES):
    """Calls run_ours(side, number) and run_peer(side, number) for the sides in turn, and report(number, side, result)
    after each. Returns `count` results of each side by its name; a warm-up, number -1, is not kept."""
    sides = {name: [] for name in names}
    for number in range(-1 if warm_up else 0, count):
        for name, results in sides.items():
            side = known[name]
            result = (run_ours if side.ours else run_peer)(side, number)
            report(number, side, result)
            if number >= 0:
                results.append(result)
    return sides


def peer_versions(works, known=SIDES):
    """Returns the versions in the peer's last result. `works`: results of in_turn(). "" if the peer did not run."""
    results = [results[-1] for sides in works for name, results in sides.items() if results and not known[name].ours]
    if not results:
        return ""
    last = results[-1]
    return f"transformers {last['transformers']}, torch {last['torch']}, {last['threads']} threads"
