"""Weights as training scripts save them: in an entry, with a wrapper's prefix, in shards."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, Tensor, copied, read_safetensors, write, write_safetensors
from harness import fail, main, need, succeed
from models.torch_files import write_torch

PREFIXES = ("module.", "_orig_mod.", "model.", "encoder.", "net.", "model._orig_mod.", "module.model.", "bert.", "0.",
            "student.", "bert_model.", "0.auto_model.", "backbone.", "my_classifier.")


def tensors(prefix="", bare=False):
    found = read_safetensors(MODEL / "model.safetensors")
    return {prefix + (name.removeprefix("bert.") if bare else name): tensor for name, tensor in found.items()}


def labels_with(model, texts):
    return succeed("predict", "--model", model, "--input", texts, "--output", "-", "--all-probabilities")


def test_a_head_of_another_name_is_named(directory):
    need("golden/tiny-bert-classification")
    texts = write(directory / "rows.csv", "text\nPETROL 1\n")
    model = copied(MODEL, directory / "m", ["model.safetensors"])
    for head in ("fc.", "classifier.0."):
        renamed = {name.replace("classifier.", head): tensor for name, tensor in tensors().items()}
        write_safetensors(model / "model.safetensors", renamed)
        fail(4, "predict", "--model", model, "--input", texts, "--output", "-",
             words=["no trained head", f"it holds '{head}bias', '{head}weight'", "rename it to classifier.weight"])
    encoder = {name: tensor for name, tensor in tensors().items() if not name.startswith("classifier.")}
    write_safetensors(model / "model.safetensors", encoder)
    result = fail(4, "predict", "--model", model, "--input", texts, "--output", "-", words=["fine-tune it first"])
    assert "it holds" not in result, result


def test_prefixes_and_entries(directory):
    need("golden/tiny-bert-classification")
    texts = write(directory / "rows.csv", "text\nPETROL 1\nRENT MAY\n")
    expected = labels_with(MODEL, texts).out
    model = copied(MODEL, directory / "m", ["model.safetensors"])

    def check(path, *words):
        result = labels_with(model, texts)
        assert result.out == expected, (path, words)
        for word in words:
            assert word in result.err, (word, result)
        path.unlink()

    for prefix in PREFIXES:
        # the model's own prefix does not tell whether there is a head
        for bare in (False, True)[:1 if prefix == "bert." else 2]:
            check(write_safetensors(model / "model.safetensors", tensors(prefix, bare)),
                  f"prefix '{prefix}' of names is left out")
    optimizer = {"state": {0: {"step": Tensor((), b"\0\0\0\0"), "exp_avg": Tensor((2,), bytes(8))}},
                 "param_groups": [{"lr": 0.5, "betas": [0.9, 0.99], "params": [0]}]}
    for entry in ("model_state_dict", "state_dict", "model", "module"):
        for legacy in (False, True):
            checkpoint = {"epoch": 3, "loss": Tensor((), b"\0\0\0\0"), "optimizer": optimizer, "note": None,
                          entry: tensors()}
            check(write_torch(model / "pytorch_model.bin", checkpoint, legacy), f"entry ['{entry}']")
    nested = {"model": {"state_dict": tensors("model._orig_mod.")}}
    check(write_torch(model / "pytorch_model.bin", nested), "entry ['model']['state_dict']", "'model._orig_mod.'")
    # The head may be beside a wrapped encoder.
    outside = {(name if name.startswith("classifier") else "encoder." + name.removeprefix("bert.")): tensor
               for name, tensor in tensors().items()}
    check(write_torch(model / "pytorch_model.bin", outside), "prefix 'encoder.'")
    # FSDP and activation checkpointing wrap modules inside the model, torch.compile a layer.
    inside = {"_fsdp_wrapped_module." + name.replace("layer.0.", "layer.0._fsdp_wrapped_module._checkpoint_wrapped_module.")
              .replace("layer.1.", "layer.1._orig_mod."): tensor for name, tensor in tensors().items()}
    assert len(inside) == len(tensors()) and any("._orig_mod." in name for name in inside)
    check(write_torch(model / "pytorch_model.bin", inside), "modules that FSDP put into names are left out")
    student = {**tensors("student."), "projection.weight": Tensor((2,), bytes(8))}
    check(write_torch(model / "pytorch_model.bin", student), "prefix 'student.'")


def test_other_commands(directory):
    need("golden/tiny-bert-classification")
    model = copied(MODEL, directory / "m", ["model.safetensors"])
    write_torch(model / "pytorch_model.bin", {"model_state_dict": tensors("_orig_mod."), "epoch": 1})
    remark = "tensors are read from its entry ['model_state_dict']; the prefix '_orig_mod.' of names is left out"
    assert remark in succeed("convert", "--model", model, "--output", directory / "c").err
    assert (directory / "c/model.safetensors").stat().st_size == (MODEL / "model.safetensors").stat().st_size
    assert remark in succeed("inspect", model).out
    shown = json.loads(succeed("inspect", model / "pytorch_model.bin", "--json").out)["weights"]
    assert remark in shown["remark"]
    assert {"classifier.weight", "bert.pooler.dense.bias"} <= {tensor["name"] for tensor in shown["tensors"]}
    rows = write(directory / "t.csv", "text,label\nPETROL 1,fuel\nRENT MAY,rent\n")
    succeed("train", "--model", model, "--reinit-head", "--train", rows, "--max-steps", 1, "--output", directory / "run")
    assert remark in (directory / "run/log.txt").read_text()


def test_shards(directory):
    """As save_pretrained(max_shard_size=..., safe_serialization=False) writes them."""
    need("golden/tiny-bert-classification")
    texts = write(directory / "rows.csv", "text\nPETROL 1\nRENT MAY\n")
    model = copied(MODEL, directory / "m", ["model.safetensors"])
    shards = [f"pytorch_model-0000{i}-of-00003.bin" for i in (1, 2, 3)]
    names = sorted(tensors())
    weight_map = {name: shards[i * 3 // len(names)] for i, name in enumerate(names)}
    for shard in shards:
        write_torch(model / shard, {name: tensors()[name] for name in names if weight_map[name] == shard},
                    legacy=shard == shards[2])
    index = write(model / "pytorch_model.bin.index.json", json.dumps({"metadata": {}, "weight_map": weight_map}))
    assert labels_with(model, texts).out == labels_with(MODEL, texts).out
    shown = json.loads(succeed("inspect", model, "--json").out)["weights"]
    assert shown["format"] == "pytorch (sharded)" and shown["path"] == str(index), shown
    assert [file["name"] for file in shown["files"]] == [index.name, *shards], shown["files"]
    for source, output in ((MODEL, "from-whole"), (model, "from-shards")):
        succeed("convert", "--model", source, "--output", directory / output)
    written = [directory / output / "model.safetensors" for output in ("from-whole", "from-shards")]
    assert written[0].read_bytes() == written[1].read_bytes()
    (model / shards[1]).unlink()
    fail(4, "convert", "--model", model, "--output", directory / "o", words=[str(index), shards[1], "is missing"])
    index.unlink()
    fail(4, "inspect", model / shards[1], words=["no such directory or file"])
    fail(4, "convert", "--model", model, "--output", directory / "o",
         words=["has no weights", "pytorch_model.bin, pytorch_model.bin.index.json, tf_model.h5"])


def test_names_that_do_not_fit(directory):
    """The message lists the contents and a solution, and does not claim that a head was missing."""
    need("golden/tiny-bert-classification")
    model = copied(MODEL, directory / "m", ["model.safetensors"])
    texts = write(directory / "rows.csv", "text\nPETROL 1\n")
    rows = write(directory / "t.csv", "text,label\nPETROL 1,fuel\nRENT MAY,rent\n")
    path = model / "pytorch_model.bin"

    def check(value, *words):
        write_torch(path, value)
        fail(4, "predict", "--model", model, "--input", texts, "--output", "-", words=[str(path), *words])
        for more in (["train", "--reinit-head", "--train", rows], ["convert"]):
            fail(4, more[0], "--model", model, *more[1:], "--output", directory / "o", words=[str(path), *words])
        assert not (directory / "o").exists()

    other = {"projection.weight": Tensor((2,), bytes(8))}
    check({**tensors("my_classifier."), **other}, "names begin with 'my_classifier.'", "removeprefix")
    check(tensors("roberta."), "names begin with 'roberta.'", "removeprefix")
    check({**tensors("teacher."), **tensors("student.")}, "2 models", "'student.'", "'teacher.'")
    check({"weight": Tensor((2,), bytes(8))}, "no tensor is a word embedding", "'weight'")
    check({"net": tensors(), "epoch": 3}, "'net' (a dictionary)", "'epoch'", "torch.save")
    check({"model": tensors(), "state_dict": tensors()}, "two state dicts, 'state_dict' and 'model'")
    check({"epoch": 3, "state_dict": {}}, "no state dict of tensors", "'epoch'")
    check([1, 2], "no dictionary of tensors")
    deep = tensors()
    for _ in range(100):
        deep = {"model": deep}
    check(deep, "in more than 8 dictionaries")
    # A second copy beside the model, such as averaged weights, is ignored.
    write_torch(path, {**tensors(), **tensors("module.")})
    assert "holds 41 other tensors ('module." in labels_with(model, texts).err.replace("(module", "('module")


main(globals())
