"""The output of `convert`: replaced as a whole or not at all, and only if finetune wrote it."""
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

from fixtures import MODEL, MODELS, QA_MODEL, TRAIN, trained, write
from harness import BINARY, GOLDEN, PATIENCE, fail, main, need, succeed


def contents(directory):
    return {path.relative_to(directory): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
            for path in Path(directory).rglob("*")}


def converted(model, output, *more, **options):
    succeed("convert", "--model", model, "--output", output, *more, **options)
    return contents(output)


def refused(output, *words, code=2, **options):
    """Files around the output do not change, with --overwrite too."""
    around = Path(options.pop("around", Path(output).parent))
    before = contents(around)
    fail(code, "convert", "--model", QA_MODEL.resolve(), "--output", output, "--overwrite", words=words, **options)
    assert contents(around) == before


def limited(size, *arguments):
    """Runs with a limit on file size; returns the exit code and standard error."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    done = subprocess.run([BINARY, *map(str, arguments)], preexec_fn=limit, capture_output=True, text=True,
                          timeout=PATIENCE)
    return done.returncode, done.stderr


def with_large_file(directory, size):
    """A model whose last copied file is large."""
    model = directory / "large"
    shutil.copytree(MODEL, model)
    model.chmod(0o755)
    with open(model / "tokenizer.model", "wb") as file:
        file.write(b"x" * size)
    return model


def test_replaces_the_whole_directory(directory):
    need(*MODELS)
    out, other = directory / "out", directory / "other"
    large = with_large_file(directory, 1000)
    first = converted(large, out)
    assert set(map(str, first)) == {"config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json",
                                    "tokenizer.model", "tokenizer_config.json", "vocab.txt"}, first
    expected = converted(QA_MODEL, other)
    fail(2, "convert", "--model", QA_MODEL, "--output", out, words=["not empty", "--overwrite"])
    assert contents(out) == first
    out.chmod(0o750)
    assert converted(QA_MODEL, out, "--overwrite") == expected
    assert out.stat().st_mode & 0o777 == 0o750
    assert converted(QA_MODEL, f"{out}/", "--overwrite") == expected
    assert converted(QA_MODEL, f"{out}/.", "--overwrite") == expected
    assert sorted(path.name for path in directory.iterdir()) == ["large", "other", "out"]


def test_fills_an_empty_directory(directory):
    """An empty output may be a mount point, a working directory or a link's target, so it is kept."""
    need(*MODELS)
    expected = converted(MODEL, directory / "new/deep")
    for name in ("empty", "here", "linked"):
        (directory / name).mkdir()
    (directory / "link").symlink_to("linked")
    inode = (directory / "empty").stat().st_ino
    assert converted(MODEL, directory / "empty") == expected
    assert (directory / "empty").stat().st_ino == inode
    succeed("convert", "--model", MODEL.resolve(), "--output", ".", cwd=directory / "here")
    succeed("convert", "--model", MODEL, "--output", directory / "link")
    assert contents(directory / "here") == contents(directory / "linked") == expected
    assert (directory / "link").is_symlink()


def test_replaces_nothing_of_others(directory):
    need(*MODELS)
    out = directory / "out"
    first = converted(MODEL, out)
    refused(out, "home directory", env={"HOME": str(out)})
    refused(".", "working directory", cwd=out, around=directory)
    refused(directory, "holds 'out'", around=directory)
    refused("", "--output: its value is empty", around=directory)
    (directory / "link").symlink_to("out")
    refused(directory / "link", "symbolic link")
    refused(f"{directory / 'link'}/", "symbolic link", around=directory)
    (out / ".git").mkdir()
    refused(out, "is a repository")
    (out / "deeper").mkdir()
    refused("..", "working directory", cwd=out / "deeper", around=directory)
    (out / "deeper").rmdir()
    (out / ".git").rmdir()
    for name in ("notes.txt", ".hidden", "pytorch_model.bin", "model.safetensors.index.json"):
        write(out / name, "mine")
        refused(out, f"holds '{name}'")
        (out / name).unlink()
    (out / "spiece.model").symlink_to(write(directory / "mine", "mine"))
    refused(out, "holds 'spiece.model'")
    (out / "spiece.model").unlink()
    write(directory / "file", "mine")
    refused(directory / "file", "is a file")
    assert contents(out) == first
    succeed("convert", "--model", QA_MODEL, "--output", out, "--overwrite")


def test_replaces_no_model_of_others(directory):
    """Files with these names may come from other programs; transformers sorts the keys of config.json when saving."""
    need(*MODELS)
    theirs = directory / "theirs"
    shutil.copytree(MODEL, theirs)
    refused(theirs, "is not a model that finetune wrote")
    out = directory / "out"
    converted(MODEL, out)
    config = json.loads((out / "config.json").read_text())
    assert list(config)[-1] == "finetune_version", config
    write(out / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
    refused(out, "is not a model that finetune wrote")
    for text in ("", "[]", "{}", "{", '"finetune_version"'):
        write(out / "config.json", text)
        refused(out, "is not a model that finetune wrote")
    (out / "config.json").unlink()
    refused(out, "is not a model that finetune wrote")


def test_models_of_runs(directory):
    need("golden/trajectory-classification-train.csv", *MODELS)
    run = trained(directory, "run", "--model", MODEL, "--train", TRAIN, "--label-column", "category")
    refused(run, "holds a run")
    refused(run / "model", "belongs to a run", around=directory)
    # A copy of it still counts as made by finetune, and so does one without a version.
    copy = directory / "copy"
    shutil.copytree(run / "model", copy)
    expected = converted(QA_MODEL, directory / "qa")
    assert converted(QA_MODEL, copy, "--overwrite") == expected
    shutil.rmtree(copy)
    shutil.copytree(run / "model", copy)
    config = json.loads((copy / "config.json").read_text())
    assert config.pop("finetune_version") and list(config)[-1] == "finetune", config
    write(copy / "config.json", json.dumps(config, indent=2))
    assert converted(QA_MODEL, copy, "--overwrite") == expected


def test_a_failure_leaves_the_old_model(directory):
    """There is room for the weights, but not for the file written after them."""
    need(*MODELS)
    large = with_large_file(directory, 4 << 20)
    out, empty = directory / "out", directory / "empty"
    old = converted(QA_MODEL, out)
    empty.mkdir()
    for target, more in ((out, ["--overwrite"]), (empty, []), (directory / "new", [])):
        code, error = limited(2 << 20, "convert", "--model", large, "--output", target, *more)
        assert code == 4 and len(error.splitlines()) == 1 and "File too large" in error, (code, error)
    assert contents(out) == old
    assert sorted(path.name for path in directory.iterdir()) == ["empty", "large", "out"]
    assert not list(empty.iterdir())


def test_a_kill_leaves_the_old_model(directory):
    need(*MODELS)
    large = with_large_file(directory, 32 << 20)
    out, empty = directory / "out", directory / "empty"
    old = converted(QA_MODEL, out)
    empty.mkdir()
    weights = (out / "model.safetensors").stat().st_ino

    def weights_are_written():
        return list(directory.glob("out.tmp.*/model.safetensors")) or list(empty.glob("*/model.safetensors")) or \
            (out / "model.safetensors").stat().st_ino != weights
    for target, more in ((out, ["--overwrite"]), (empty, [])):
        line = ["convert", "--model", large, "--output", target, *more]
        process = subprocess.Popen([BINARY, *map(str, line)], stdout=subprocess.DEVNULL)
        deadline = time.time() + PATIENCE
        while not weights_are_written() and time.time() < deadline:
            time.sleep(0.0005)
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it had ended before"
        assert contents(out) == old
        # The next writer removes the leftovers; a user's directory with a similar name stays.
        mine = directory / "out.tmp.2024"
        shutil.copytree(out, mine, dirs_exist_ok=True)
        fail(4, "convert", "--model", directory / "none", "--output", target, *more, words=["none"])
        succeed("convert", "--model", QA_MODEL, "--output", target, *more)
        assert contents(target) == old == contents(mine)
    assert sorted(path.name for path in directory.iterdir()) == ["empty", "large", "out", "out.tmp.2024"]


def test_a_directory_for_sentence_transformers(directory):
    """Modules after the encoder: the first token, the head's dense layer, the classifier."""
    need(*MODELS)
    out, to = directory / "out", ("--to", "sentence-transformers")
    succeed("convert", "--model", MODEL, "--output", out, *to)
    modules = json.loads((out / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Dense", "3_Dense"], modules
    config = json.loads((out / "config.json").read_text())
    assert config["architectures"] == ["BertModel"] and config["id2label"], config
    classifier = json.loads((out / "3_Dense/config.json").read_text())
    assert (classifier["in_features"], classifier["out_features"]) == (config["hidden_size"], len(config["id2label"]))
    assert json.loads((out / "2_Dense/config.json").read_text())["activation_function"].endswith("Tanh")
    assert json.loads((out / "1_Pooling/config.json").read_text())["pooling_mode_cls_token"] is True
    fail(2, "convert", "--model", MODEL, "--output", out, *to, words=["out", "not empty"])
    # Nothing is left of what does not succeed.
    modernbert = GOLDEN / "family/modernbert/classification"
    for model, more, words in ((QA_MODEL, [], ["no text classifier"]), (modernbert, [], ["ModernBert", "leave out --to"]),
                               (MODEL, ["--overwrite"], ["--overwrite", "new directory"])):
        fail(2, "convert", "--model", model, "--output", directory / "no", *to, *more, words=words)
    large = with_large_file(directory, 1000)
    code, error = limited(200 << 10, "convert", "--model", large, "--output", directory / "no", *to)
    assert code == 4 and "File too large" in error, (code, error)
    assert sorted(path.name for path in directory.iterdir()) == ["large", "out"]


def test_a_planted_link_is_not_followed(directory):
    """The output has the name of a directory that a killed writer left."""
    need(*MODELS)
    victim = directory / "victim"
    victim.mkdir()
    write(victim / "model.safetensors", "precious")
    for suffix in ("0" * 16, "0123456789abcdef"):
        os.symlink(victim, directory / f"out.tmp.{suffix}")
    succeed("convert", "--model", MODEL, "--output", directory / "out")
    succeed("convert", "--model", QA_MODEL, "--output", directory / "out", "--overwrite")
    assert (victim / "model.safetensors").read_text() == "precious"


main(globals())
