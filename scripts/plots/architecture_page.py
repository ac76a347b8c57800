"""The pictures and the map of docs/architecture.md: layers, the flow of data, a checkpoint."""
import re

from pages import table
from svg import Picture

CODE = ("src", "tokenizer", "tasks", "data")
# The plan of layers, from the top down: (layer, what it does).
HOUSE = [
    [("cli", "commands, options, exit codes")],
    [("bench", "throughput, layouts")],
    [("experiments", "sweeps, comparisons, reports")],
    [("train", "runs, steps, checkpoints")],
    [("inference", "batches, fine-tuned models")],
    [("distributed", "ZeRO, ordered sums, pipeline")],
    [("engine", "a model on a device")],
    [("tasks", "labels, answers, masked words")],
    [("model", "forward and backward pass")],
    [("ops", "arithmetic on CPU and GPU")],
]
SIDE = [("comm", "between processes"), ("weights", "weight files"), ("tokenizer", "bytes to ids"),
        ("data", "files to rows, batches")]
BASE = ("core", "errors, text, files, threads, random numbers")
LINKS = {"comm": "engine", "weights": "engine", "tokenizer": "tasks", "data": "tasks"}  # layer: the layer that uses it


def layers_of_the_build(root):
    """Returns {layer: folder} from meson.build."""
    found = re.search(r"^layers = \{(.*?)^\}", (root / "meson.build").read_text(encoding="utf-8"),
                      re.MULTILINE | re.DOTALL)[1]
    return dict(re.findall(r"'(\w+)': '([\w/]+)'", found))


def house():
    width, left, room = 680, 24, 300
    height = 40 + 40 * len(HOUSE) + 74
    picture = Picture(width, height, "Layers: each uses those below it, and nothing above")
    picture.text(left, 26, picture.title, style="title")
    middle = {}
    for at, row in enumerate(HOUSE):
        y = 42 + 40 * at
        for name, words in row:
            picture.rect(left, y, room, 34, "accent" if name in ("train", "tasks", "model", "ops") else "box", "edge",
                         4)
            picture.text(left + 12, y + 22, name, style="bold")
            picture.text(left + room - 12, y + 22, words, "muted", "end", "small")
            middle[name] = y + 17
    right = width - 24 - 230
    for at, (name, words) in enumerate(SIDE):
        y = middle["distributed"] - 17 + 40 * at
        picture.rect(right, y, 230, 34, "box", "edge", 4)
        picture.text(right + 12, y + 22, name, style="bold")
        picture.text(right + 218, y + 22, words, "muted", "end", "small")
        middle[name] = y + 17
    for name, above in LINKS.items():
        x, level = (left + room + right) / 2, middle[name] == middle[above]
        start = middle[above] + (0 if level else 9 if name == "data" else -9)
        points = [(left + room, start), (x, start), (x, middle[name]), (right, middle[name])]
        picture.arrow([points[0], points[-1]] if level else points)
    y = 42 + 40 * len(HOUSE)
    picture.rect(left, y, width - 48, 34, "box", "edge", 4)
    picture.text(left + 12, y + 22, BASE[0], style="bold")
    picture.text(left + 72, y + 22, BASE[1], "muted", style="small")
    picture.text(left,
                 y + 56,
                 "Arrows: tasks also use tokenizer and data; engine uses weights and comm. Every layer uses core.",
                 "muted",
                 style="small")
    return picture


FLOW = [
    [("bytes", "CSV, JSON, SQuAD"), ("examples", "data"), ("tokens, targets", "tokenizer, tasks"),
     ("global batch", "data/plan.h")],
    [("virtual shards", "K parts, fixed"), ("packed batches", "no padding"), ("forward", "model, ops"),
     ("backward", "model, ops")],
    [("ordered sum", "distributed"), ("clip", "one norm"), ("update", "AdamW"), ("metrics", "inference, tasks")],
]


def data_flow():
    box, gap, left, top, high = 140, 24, 26, 44, 76
    picture = Picture(690, 282, "One training step, from bytes to metrics")
    picture.text(left, 26, picture.title, style="title")
    for line, row in enumerate(FLOW):
        y = top + line * high
        for at, (name, words) in enumerate(row):
            x = left + at * (box + gap)
            picture.rect(x, y, box, 46, "accent" if name in ("forward", "backward") else "box", "edge", 4)
            picture.text(x + box / 2, y + 20, name, anchor="middle", style="bold")
            picture.text(x + box / 2, y + 37, words, "muted", "middle", "small")
            if at:
                picture.arrow([(x - gap, y + 23), (x, y + 23)])
        if line:
            end = left + 4 * box + 3 * gap
            below = y - (high - 46) / 2
            picture.arrow([(end - box / 2, y - high + 46), (end - box / 2, below), (left + box / 2, below),
                           (left + box / 2, y)])
    picture.text(left,
                 270,
                 "Processes split the work at the virtual shards; the ordered sum makes the result independent of how.",
                 "muted",
                 style="small")
    return picture


CHECKPOINT = [
    ("user block: the seal", "SHA-256 of all bytes behind it; written last", "accent"),
    ("/weights/NAME", "fp32, one dataset a parameter, by its Hugging Face name", "box"),
    ("/m/NAME, /v/NAME", "AdamW's two moments, the same names and shapes", "box"),
    ("/options", "the run's config.toml as text", "box"),
    ("/labels", "the label of each class, in order of id", "box"),
    ("attributes of /", "step, epoch, best value, digests of data and model, version", "box"),
    ("attributes of /totals", "sums that the loop carries: loss, seconds, ...", "box"),
]


def checkpoint():
    left, width, first, row = 24, 690, 190, 32
    picture = Picture(width, 76 + row * len(CHECKPOINT), "A checkpoint: step-00000100.h5, an HDF5 file behind a seal")
    picture.text(left, 26, picture.title, style="title")
    for at, (name, words, fill) in enumerate(CHECKPOINT):
        y = 40 + row * at
        picture.rect(left, y, width - 2 * left, row, fill, "edge")
        picture.text(left + 12, y + 21, name, style="bold")
        picture.text(left + first, y + 21, words, "muted")
    picture.text(
        left,
        62 + row * len(CHECKPOINT),
        "Tensors are stored by name, so any number of processes and any layout reads and writes the same bytes.",
        "muted",
        style="small")
    return picture


def map_table(root):
    """Returns a table with a row for each layer: its folder, the first comment of its meson.build, and its folders."""
    folders = sorted({
        path.parent.relative_to(root).as_posix()
        for code in CODE
        for path in (root / code).rglob("*") if path.is_file()
    })
    rows = []
    for folder in reversed(layers_of_the_build(root).values()):
        opening = (root / folder / "meson.build").read_text(encoding="utf-8").splitlines()[0]
        words = re.sub(r"^# (The \w+ layer: )?", "", opening).rstrip(".")
        inner = [f"`{name}`" for name in folders if name.startswith(folder + "/")]
        rows.append((f"`{folder}`", words, ", ".join(inner)))
    return table(["layer", "what it does", "folders in it"], rows)


def made(docs):
    root = docs.parent
    drawn = {name for row in HOUSE for name, _ in row} | {name for name, _ in SIDE} | {BASE[0]}
    if drawn != set(layers_of_the_build(root)):
        raise SystemExit(
            f"draw: error: the picture of the layers and meson.build differ: {drawn ^ set(layers_of_the_build(root))}")
    return {"layers": house(), "data-flow": data_flow(), "checkpoint": checkpoint()}, {"map": map_table(root)}
