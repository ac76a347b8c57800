"""Command lines, config.toml, a sweep's grid, metrics."""
import json
import re


def train_options(root):
    return re.findall(r'visit\(\s*\{"([a-z0-9-]+)"', (root / "src/train/options/options.h").read_text())


def all_options(root):
    found = set(train_options(root))
    for path in sorted((root / "src/cli").rglob("*.[ch]*")):
        found.update(name for name in re.findall(r'"--([a-z0-9-]+)', path.read_text()))
    return sorted(found)


COMMANDS = """train --model m --train a.csv b.csv --eval c.csv --label-column category --output runs/a
train --task=qa --model=m --train=t.json --eval_fraction=0.1 --lr 3e-5 --epochs 2 --output=o --resume
train --config config.toml --seed 43 --output runs/c --assert eval_f1>=88 --baseline b --tolerance eval_f1=1%
train --model m --train t --output o --pp 2 --tp 2 --stages 7,5 --placement spread --micro-batches 4
train --model m --train t --output o --recompute --offload-activations --device cuda --threads all
sweep grid.toml --output runs/s
evaluate --model runs/a/model --data test.csv --json --batch-size 8
predict --model m --input - --output - --top-k 3 --all-probabilities --stream
tokenize --model m --text "hello"
inspect file.h5 --json
convert --model m --output o --dtype f16
compare a b
report runs/a --output r.html
score --data d.json --predictions p.json --na-prob n.json --na-prob-threshold 0.5 --squad-version 2
bench step --model tiny
plan --model m --world 8
doctor --pp 2
train --help
help train
--version
trian --model m
train --modle m"""

TOML = """# a comment
model = "m"
train = ["a.csv", 'b.csv',
  "c\\u00e9.csv",
]
epochs = 3.5
lr = 5e-05
"batch_size" = 1_000
regression = true
text-column = []
"""

GRID = """model = "m"
train = ["a.csv"]
eval = ["b.csv"]
[sweep]
lr = [1e-5, 3e-5]
batch-size = { min = 8, max = 64, draws = 3, seed = 7 }
"""
RANGES = """output = "o"
model = "m"
train = "t"
[sweep]
draws = 4
draw-seed = 1
lr = { min = 1e-5, max = 1e-3, log = true }
dropout = { min = 0, max = 0.3 }
text-column = ["a", ["b", "c"]]
"""


def add(corpora, root):
    for i, line in enumerate(COMMANDS.splitlines()):
        words = [word.strip('"') for word in line.split()]
        corpora.add("command_line", f"{i:02}-{words[0].strip('-')}", "\n".join(words) + "\n", TOML)
        if words[0] == "train" and "--help" not in words:
            corpora.add("train_options", f"{i:02}", "\n".join(words[1:]) + "\n")
    words = ["--" + name for name in all_options(root)] + [name + "=" for name in ("--lr", "--epochs", "--assert", "--stages")]
    words += [line.split()[0] for line in COMMANDS.splitlines()]
    words += ["auto", "all", "none", "balanced", "cuda", "cpu", "bf16", "fp32", "cluster", "spread", "interleaved", "gpipe", "1h30m",
              "90s", "eval_f1>=88", "eval_f1=1%", "qa", "classification", "1e-5", "nan", "inf", "--", "-h", "\n", "DPT", "7,5",
              "9223372036854775808"]
    corpora.words(["command_line", "train_options"], words)
    corpora.add("config_toml", "plain", TOML)
    corpora.add("config_toml", "bom", "\ufeff" + TOML.replace("\n", "\r\n"))
    corpora.add("config_toml", "table", TOML + "[table]\n")
    corpora.add("config_toml", "strings", 'a = "\\t\\"\\\\\\U0001F600"\nb = \'raw \\\'\n')
    corpora.add("grid_toml", "lists", GRID)
    corpora.add("grid_toml", "ranges", RANGES)
    names = train_options(root)
    corpora.words(["config_toml", "grid_toml"], [f"\n{name} = " for name in names] +
                  ["[sweep]\n", "{ min = 1, max = 9", ", log = true", ", draws = 3", ", seed = 1", " }", "[", "]", ",", '"', "'",
                   '\\"', "\\u0041", "\\U0001F600", "true", "false", "#", "1_0", "1e-5", "draws = ", "draw-seed = "])
    metrics = {"eval_loss": 0.123456789012345678, "eval_accuracy": 1.0, "steps": 100, "tiny": 5e-324, "huge": 1e308}
    corpora.add("metrics_json", "metrics", json.dumps(metrics, indent=2))
    corpora.add("metrics_json", "facts", json.dumps({"version": "0.1.0", "host": "caf\u00e9", "data_sha256": "ab" * 32}))
    corpora.add("metrics_json", "log", '{"step":1,"loss":2.5}\n{"step":2,"eval_loss":1}\n{"step":3,"lo')
    corpora.words(["metrics_json"], ['{"step":', '"loss":', '"eval_loss":', "1e308", "-0.0", "5e-324", "null", "\n", "{}", '"a"'])
