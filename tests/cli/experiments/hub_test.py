"""Models named by their hub id, from Hugging Face's cache, in every command with --model."""
import json
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, MODELS, TRAIN, write
from harness import GOLDEN, facts_of, fail, main, need, run, succeed

# The vocabulary's files of each architecture's published base model; its weights are those of masked words, where there
# are golden ones.
WORDPIECE = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
PUBLISHED = {"albert": ("spiece.model", "tokenizer.json", "tokenizer_config.json"),
             "camembert": ("sentencepiece.bpe.model", "tokenizer_config.json"), "distilbert": WORDPIECE,
             "deberta-v3": ("spm.model", "tokenizer_config.json"),
             "electra": WORDPIECE, "modernbert": ("tokenizer.json", "tokenizer_config.json"), "mpnet": WORDPIECE, "nomic_bert": WORDPIECE,
             "roberta": ("vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"),
             "xlm-roberta": ("sentencepiece.bpe.model", "tokenizer.json", "tokenizer_config.json")}
COMMIT, OTHER = "86b5e0934494bd15c9632b12f734a8a67f723594", "b" * 40


def cache_with(directory, model=MODEL, name="org--tiny", commit=COMMIT, branch="main", without=()):
    """A download as huggingface_hub stores it: each file is a link to a blob named by its hash."""
    folder = directory / f"hub/models--{name}"
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir(exist_ok=True)
    for number, file in enumerate(sorted(model.iterdir())):
        if file.name in without:
            continue
        blob = folder / "blobs" / f"{commit[:8]}{number:032x}"
        shutil.copy(file, blob)
        (snapshot / file.name).symlink_to(f"../../blobs/{blob.name}")
    (folder / "refs").mkdir(exist_ok=True)
    write(folder / "refs" / branch, commit)
    return snapshot


def environment(directory):
    return {"HF_HOME": str(directory), "HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": ""}


def test_every_command_takes_an_id(directory):
    need(*MODELS)
    snapshot, env = cache_with(directory), environment(directory)
    line = ["train", "--train", TRAIN, "--label-column", "category", "--max-steps", 4, "--save-every", 2]
    out = directory / "run"
    log = succeed(*line, "--model", "org/tiny", "--output", out, env=env).err
    assert f"of the Hugging Face cache: org/tiny, commit {COMMIT}" in log, log
    succeed(*line, "--model", MODEL, "--output", directory / "path", "--quiet")
    facts = facts_of(out)
    assert facts["weights_sha256"] == facts_of(directory / "path")["weights_sha256"]
    assert (facts["model_id"], facts["model_revision"], facts["model"]) == ("org/tiny", COMMIT, str(snapshot)), facts
    assert "model_id" not in facts_of(directory / "path")
    config = (out / "config.toml").read_text()
    assert f'model = "{snapshot}"' in config, config
    for command in (["evaluate", "--data", EVAL, "--label-column", "category", "--json"],
                    ["predict", "--input", EVAL, "--output", "-"], ["tokenize", TRAIN]):
        named = run(*command, "--model", "org/tiny", env=env)
        assert named.code == 0, named
        if command[0] in ("predict", "tokenize"):
            assert named.out == succeed(*command, "--model", MODEL).out, command
    check = ["check", *line[1:5], "--no-ngram-baseline", "--max-length", 8]
    checked = [re.sub(r"[\d.]+ s of processor time", "", succeed(*check, "--model", model, env=env).out)
               for model in ("org/tiny", MODEL)]
    assert checked[0] == checked[1], checked
    plan = ["plan", *line[1:], "--no-time", "--json"]
    parameters = [json.loads(succeed(*plan, "--model", model, env=env).out)["parameters"] for model in ("org/tiny", MODEL)]
    assert parameters[0] == parameters[1]
    assert '"parameters"' in succeed("bench", "step", "--shape", "org/tiny", "--lengths", 16, "--steps", 1, "--batch-size", 2,
                                     "--json", env=env).out
    succeed("plan", "--world", 2, "--model", "org/tiny", env=env)
    described = json.loads(succeed("inspect", "org/tiny", "--json", env=env).out)
    assert described["directory"] == str(snapshot) and described["weights"]["format"] == "safetensors", described
    succeed("convert", "--model", "org/tiny", "--output", directory / "converted", env=env)
    grid = write(directory / "grid.toml", f"model = 'org/tiny'\ntrain = '{TRAIN}'\neval = '{EVAL}'\nlabel-column = 'category'\n"
                 "max-steps = 2\n[sweep]\nseed = [1, 2]\n")
    succeed("sweep", grid, "--output", directory / "sweep", env=env)
    assert facts_of(directory / "sweep/seed=1")["model_revision"] == COMMIT


def published(directory, name):
    """A model directory as it is on the hub; of xlm-roberta and albert the two vocabularies are in two golden folders."""
    model = directory / name
    of_words, *others = (GOLDEN / f"family/{name}/{part}" for part in ("mlm", "classification", "qa"))
    shutil.copytree(of_words if of_words.exists() else others[0], model)
    for file in PUBLISHED[name]:
        shutil.copy(next(folder / file for folder in others if (folder / file).exists()), model)
    write(model / "README.md", "---\nlicense: mit\n---\n")
    write(model / "flax_model.msgpack", b"\0")
    return model


def test_every_architecture_opens_by_its_id(directory):
    """With the files that are published, and with the vocabulary's own file where tokenizer.json is not downloaded."""
    need(*(f"golden/family/{name}" for name in PUBLISHED))
    env = environment(directory)
    line = ["train", "--train", TRAIN, "--label-column", "category", "--max-steps", 1, "--batch-size", 4, "--reinit-head",
            "--quiet"]
    for name, files in PUBLISHED.items():
        cache_with(directory, published(directory, name), name=f"org--{name}")
        succeed(*line, "--model", f"org/{name}", "--output", directory / f"{name}-run", env=env)
        facts = facts_of(directory / f"{name}-run")
        assert (facts["model_id"], facts["model_revision"]) == (f"org/{name}", COMMIT), facts
        if len(files) < 3:
            continue
        cache_with(directory, directory / name, name=f"org--{name}-bare", without=("tokenizer.json", "flax_model.msgpack"))
        succeed(*line, "--model", f"org/{name}-bare", "--output", directory / f"{name}-bare", env=env)
        assert facts_of(directory / f"{name}-bare")["weights_sha256"] == facts["weights_sha256"], name


def test_a_run_stays_with_its_snapshot(directory):
    """The branch moves on; repeating and resuming use the commit of the run's start."""
    need(*MODELS)
    cache_with(directory)
    env = environment(directory)
    out = directory / "run"
    line = ["train", "--model", "org/tiny", "--train", TRAIN, "--label-column", "category", "--max-steps", 4, "--save-every",
            2, "--keep-checkpoints", 9, "--quiet", "--output"]
    succeed(*line, out, env=env)
    changed = directory / "changed"
    shutil.copytree(MODEL, changed)
    weights = (changed / "model.safetensors").read_bytes()
    write(changed / "model.safetensors", weights[:-4] + b"\0\0\0\0")
    cache_with(directory, model=changed, commit=OTHER)
    # without any environment variable
    succeed("train", "--config", out / "config.toml", "--output", directory / "again", "--quiet")
    assert facts_of(directory / "again")["weights_sha256"] == facts_of(out)["weights_sha256"]
    assert facts_of(directory / "again")["model_id"] == "org/tiny"
    (out / "metrics.json").unlink()
    (out / "checkpoints/step-00000004.h5").unlink()
    before = facts_of(out)["weights_sha256"]
    # The id now means another model, and the message says so; the recorded commit still works.
    fail(3, *line, out, "--resume", env=env, words=["--model has changed"])
    line[2] = f"org/tiny@{COMMIT}"
    succeed(*line, out, "--resume", env=env)
    assert facts_of(out)["weights_sha256"] == before
    assert COMMIT in (out / "config.toml").read_text() and OTHER not in (out / "config.toml").read_text()


def test_what_is_missing(directory):
    need(*MODELS)
    cache_with(directory, without=("model.safetensors",))
    env = environment(directory)
    files = "config.json tokenizer.json tokenizer_config.json 'vocab.*' merges.txt '*.model' model.safetensors"
    out = directory / "out"
    for command in (["train", "--train", TRAIN, "--output", out], ["evaluate", "--data", EVAL],
                    ["predict", "--input", EVAL, "--output", "-"], ["convert", "--output", out],
                    ["plan", "--train", TRAIN]):
        fail(4, *command, "--model", "org/tiny", env=env,
             words=["has no weights", f"hf download org/tiny --revision {COMMIT} {files}"])
        fail(4, *command, "--model", "org/other", env=env,
             words=["org/other: no such directory or file", str(directory / "hub"), f"hf download org/other {files}"])
    for command in (["tokenize", TRAIN, "--model"], ["inspect"], ["bench", "tokenizer", "--input", TRAIN, "--model"]):
        fail(4, *command, "org/other", env=env, words=["no such directory or file", f"hf download org/other {files}"])
    fail(2, "bench", "step", "--shape", "org/other", env=env, words=["--shape 'org/other'", "Hugging Face cache"])
    fail(4, "train", "--train", TRAIN, "--output", out, "--model", "org/tiny@v2", env=env,
         words=[f"only revision org/tiny@{COMMIT}", "hf download org/tiny --revision v2"])
    fail(4, "train", "--train", TRAIN, "--output", out, "--model", "tiny", env=env, words=["but org/tiny; give that"])
    vocabulary = [file.name for file in MODEL.iterdir() if file.name not in ("config.json", "model.safetensors")]
    cache_with(directory, name="bare", without=vocabulary)
    fail(4, "train", "--train", TRAIN, "--output", out, "--model", "bare", env=env,
         words=["has no vocabulary", "hf download bare"])
    # An existing directory of that name takes precedence; anything that cannot be an id is a path.
    fail(4, "inspect", "a/b/c", env=env, words=["a/b/c: no such directory or file; a model is"])
    (directory / "org/tiny").mkdir(parents=True)
    fail(4, "train", "--train", TRAIN, "--output", out, "--model", "org/tiny", env=env, cwd=directory,
         words=["org/tiny: has neither config.json"])
    assert not out.exists()


main(globals())
