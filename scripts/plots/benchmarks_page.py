"""The plots and tables of docs/benchmarks.md, from the CSV files in docs/benchmarks."""
from charts import bars
from csv_files import read
from pages import table

TITLES = {"xeon-amx": "Intel Xeon, AMX", "zen5": "AMD Zen 5", "zen4": "AMD Zen 4", "zen3": "AMD Zen 3"}
SIDES = {"fp32": ("finetune fp32", "HF fp32, best setting"), "bf16": ("finetune bf16", "HF bf16, best setting")}
OURS_AND_PEER = {"finetune": "ours", "transformers": "peer"}
SERIES = {
    "AMX, bf16": "ours", "AMX, fp32": "ours2", "Zen 4, bf16": "fourth", "Zen 4, fp32": "third", "Zen 3, fp32": "fifth"
}
MEASURED = (("AMX, bf16", "xeon-amx", "bf16"), ("AMX, fp32", "xeon-amx", "fp32"), ("Zen 4, bf16", "zen4", "bf16"),
            ("Zen 4, fp32", "zen4", "fp32"), ("Zen 3, fp32", "zen3", "fp32"))
BANK = "MiniLM-L6, bank text, batch 32"
ENCODERS = {
    "roberta": "RoBERTa", "xlm-roberta": "XLM-R", "camembert": "CamemBERT", "distilbert": "DistilBERT", "electra": "ELECTRA",
    "modernbert": "ModernBERT", "mpnet": "MPNet", "nomic_bert": "Nomic", "deberta-v2": "DeBERTa-v3", "albert": "ALBERT", "bert": "BERT"
}
ENCODER_SERIES = {"fp32, small shape": "ours", "fp32, base shape": "ours2", "bf16, small shape": "fourth"}


def grouped(number):
    """Puts commas between thousands."""
    whole, dot, rest = number.partition(".")
    return f"{int(whole):,}{dot}{rest}"


def titled(machine):
    """Returns a machine's title; without one in TITLES, the name in the CSV file."""
    return TITLES.get(machine, machine)


def short(work):
    """Returns two lines: the model, and the data with the batch."""
    model, _, data = work.replace(" shape", "").partition(", ")
    return f"{model}\n{data}"


class Figures:
    def __init__(self, folder):
        self.rows = {path.stem: read(path) for path in sorted(folder.glob("*.csv"))}

    def one(self, name, **wanted):
        found = [row for row in self.rows[name] if all(row[key] == value for key, value in wanted.items())]
        if len(found) != 1:
            raise SystemExit(f"draw: error: {name}.csv has {len(found)} rows of {wanted}; one is needed")
        return found[0]

    def works(self, name):
        return list(dict.fromkeys(row["work"] for row in self.rows[name]))

    def training(self, machine, work, side):
        return self.one("training", machine=machine, part="training", work=work, side=side)


def speed(figures):
    """Draws the README's plot: samples per second of one work on each processor."""
    groups = []
    for machine, precision in (("xeon-amx", "bf16"), ("xeon-amx", "fp32"), ("zen4", "bf16"), ("zen4", "fp32"),
                               ("zen3", "fp32")):
        values = [float(figures.training(machine, BANK, side)["samples/s median"]) for side in SIDES[precision]]
        ours, peer = SIDES[precision]
        ratio = figures.one("training-ratios", machine=machine, part="training", work=BANK, ours=ours, against=peer)
        texts = f"{values[0]:,.0f}  ({float(ratio['reached median']):.1f} times)", f"{values[1]:,.0f}"
        groups.append((f"{titled(machine)}, {precision}", dict(zip(OURS_AND_PEER, zip(values, texts)))))
    return bars("Training on two CPU cores, samples per second",
                "MiniLM-L6 on bank texts, batch 32; transformers at its fastest setting; medians of 3 pairs of runs.",
                groups, OURS_AND_PEER, "", width=660, left=168, bar=12, high=960)


def times(figures, name, title, note, **wanted):
    """Draws how many times as fast as transformers each work is on each processor."""
    groups = []
    for work in dict.fromkeys(row["work"] for row in figures.rows[name] if row["part"] == wanted["part"]):
        values = {}
        for series, machine, precision in MEASURED:
            ours, peer = SIDES[precision]
            row = figures.one(name, machine=machine, work=work, ours=ours, against=peer, **wanted)
            value = float(row["reached median"])
            values[series] = value, f"{value:.1f}"
        groups.append((short(work), values))
    return bars(title, note, groups, SERIES, "", mark=1, bar=12)


def encoders(figures):
    """Draws how many times as fast as transformers each architecture is on each kind of text."""
    groups = {}
    for row in [row for row in figures.rows["encoders"] if row["machine"] == "zen5"]:
        shape, kind, _ = row["work"].split(", ")
        series = f"{row['ours'].split()[1]}, {shape}"
        if series in ENCODER_SERIES:
            value = float(row["reached median"])
            groups.setdefault((row["architecture"], kind), {})[series] = value, f"{value:.1f}"
    kinds = [kind for _, kind in groups]
    order = sorted(groups, key=lambda group: (list(ENCODERS).index(group[0]), kinds.index(group[1])))
    shown = [(f"{ENCODERS[name]}\n{kind}", {series: groups[name, kind][series] for series in ENCODER_SERIES
                                            if series in groups[name, kind]}) for name, kind in order]
    return bars("Training: architectures beside BERT, times as fast as transformers",
                "Line: as fast as transformers at its fastest setting. Real tokens per second of processor time; AMD Zen 5.",
                shown, ENCODER_SERIES, "", mark=1, bar=12)


def memory(figures):
    groups = []
    for work in dict.fromkeys(row["work"] for row in figures.rows["training"] if row["part"] == "training"):
        values = {}
        for name, side in zip(OURS_AND_PEER, SIDES["fp32"]):
            value = float(figures.training("xeon-amx", work, side)["peak memory, MiB"])
            values[name] = value, f"{value:,.0f} MiB"
        groups.append((short(work), values))
    return bars("Peak memory of training, MiB",
                "Intel Xeon, fp32, transformers at its fastest setting. Other processors: training.csv.",
                groups,
                OURS_AND_PEER,
                "",
                high=7600)


def gpu(figures):
    groups = []
    for work in figures.works("gpu-training"):
        values = [float(figures.one("gpu-training", work=work, side=side)["samples/s median"])
                  for side in ("finetune bf16", "PyTorch bf16")]
        ratio = float(figures.one("gpu-ratios", work=work, against="PyTorch bf16")["times the real tokens/s median"])
        text = f"{ratio:.1f}  ({values[0]:,.0f} and {values[1]:,.0f} samples/s)"
        groups.append((short(work), {"finetune": (ratio, text)}))
    return bars(
        "Training on one NVIDIA H200, times as fast as transformers on PyTorch",
        "Line: as fast. bf16; PyTorch with SDPA attention and fused AdamW, without torch.compile; medians of 2 runs.",
        groups, {"finetune": "ours"},
        "",
        mark=1,
        high=32,
        bar=18)


def training_table(figures):
    head = [
        "work", "processor", "finetune, samples/s", "transformers, samples/s", "times as fast",
        "memory, of transformers'"
    ]
    rows = []
    for work in dict.fromkeys(row["work"] for row in figures.rows["training"] if row["part"] == "training"):
        for machine, precision in ((machine, precision) for _, machine, precision in MEASURED):
            ours, peer = (figures.training(machine, work, side)["samples/s median"] for side in SIDES[precision])
            ratio = figures.one("training-ratios",
                                machine=machine,
                                part="training",
                                work=work,
                                ours=SIDES[precision][0],
                                against=SIDES[precision][1])
            rows.append((short(work).replace("\n", ", "), f"{titled(machine)}, {precision}", ours, peer,
                         ratio["reached median"], f"{float(ratio['memory']):.0%}"))
    return table(head, rows, head[2:])


def tokenizer_table(figures):
    head = ["text", "processor", "finetune, MB/s", "tokenizers, MB/s", "times as fast"]
    rows = [(row["text"], titled(row["machine"]), row["finetune, MB/s median"], row["HF, MB/s"], row["times HF median"])
            for text in dict.fromkeys(row["text"] for row in figures.rows["tokenizer"])
            for row in figures.rows["tokenizer"] if row["text"] == text]
    return table(head, rows, head[2:])


def startup_table(figures):
    head = ["model", "processor", "finetune, s", "transformers, s"]
    rows = [(row["work"], titled(row["machine"]), row["start to first step, s median"],
             figures.one("startup", machine=row["machine"], work=row["work"],
                         side="HF fp32")["start to first step, s median"]) for row in figures.rows["startup"]
            if row["side"] == "finetune fp32"]
    return table(head, rows, head[2:])


def whole_table(figures):
    head = ["processor", "side", "whole run, s", "accuracy, %", "peak memory, MiB"]
    rows = [(titled(row["machine"]), row["side"].replace("HF", "transformers").replace(", best setting", ""),
             grouped(row["whole run, s median"]), row["accuracy, % median"], row["peak memory, MiB"])
            for row in figures.rows["whole"]]
    return table(head, rows, head[2:])


def gpu_table(figures):
    head = ["work", "side", "evaluate, sequences/s", "predict, sequences/s"]
    rows = [(row["work"], row["side"].replace("PyTorch", "transformers on PyTorch"),
             grouped(row["evaluate, sequences/s median"]), grouped(row["predict median"]))
            for row in figures.rows["gpu-inference"]]
    return table(head, rows, head[2:])


def scaling_table(figures):
    head = [
        "work", "1 process, 2 threads, samples/s", "2 processes, 1 thread, samples/s", "ratio", "8 hosts, forecast",
        "64 hosts", "512 hosts"
    ]
    rows = []
    for row, forecast in zip(figures.rows["scaling"], figures.rows["scaling-forecast"]):
        hosts = [forecast[f"efficiency on {count} hosts, %"] + " %" for count in (8, 64, 512)]
        rows.append((row["work"], row[head[1]], row[head[2]], row["ratio median"], *hosts))
    return table(head, rows, head[1:])


def made(docs):
    """Returns the page's pictures by file name, and its tables by name."""
    figures = Figures(docs / "benchmarks")
    pictures = {
        "speed": speed(figures), "training": times(
            figures,
            "training-ratios",
            "Training: times as fast as transformers",
            "Line: as fast as transformers at its fastest setting. Real tokens per second; medians of 3 pairs of runs.",
            part="training"),
        "inference": times(
            figures,
            "inference-ratios",
            "Evaluation: times as fast as transformers",
            "Line: as fast as transformers at its fastest setting. Sequences per second; medians of 3 pairs of runs.",
            part="inference",
            what="evaluation in training"), "memory": memory(figures), "gpu": gpu(figures), "encoders": encoders(figures)
    }
    tables = {"training": training_table(figures), "whole": whole_table(figures), "startup": startup_table(figures),
              "tokenizer": tokenizer_table(figures), "gpu": gpu_table(figures), "scaling": scaling_table(figures)}
    return pictures, tables
