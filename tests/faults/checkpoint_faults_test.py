"""A checkpoint whose writing fails at any call: the run says so, or the file is whole.

--resume goes on from before. Every checkpoint that is there afterwards is compared with that of an undisturbed run, byte by byte.
"""
import array
import hashlib
import json
import random
import shutil
import signal
from collections import Counter

from faults import Fault, calls_in, each, need_module, walk
from checkpoint_content import checkpoint_content
from blank_model import blank_model
from harness import GOLDEN, facts_of, fail, main, need, run, succeed

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] paid cash card rent tram tea".split()
TRAIN = ["train", "--model", "../model", "--train", "../train.csv", "--output", "run", "--max-steps", "4",
         "--save-every", "2", "--keep-checkpoints", "9", "--batch-size", "4", "--lr", "1e-2", "--threads", "1",
         "--quiet"]
PATH = "/run/checkpoints/step-"


def prepare(directory):
    """A tiny model of random weights, in which a part that is lost is seen, and rows to train it with."""
    need_module()
    source = directory / "source"
    source.mkdir()
    (source / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (source / "config.json").write_text(json.dumps({
        "model_type": "bert", "max_position_embeddings": 16, "type_vocab_size": 2, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}))
    weights = blank_model(directory / "model", source, hidden=32, layers=1, vocabulary=len(WORDS)) / "model.safetensors"
    chance = random.Random(1)
    content = weights.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    values = array.array("f", [chance.gauss(0, 0.1) for _ in range((len(content) - begin) // 4)])
    weights.write_bytes(content[:begin] + values.tobytes())
    rows = [" ".join(chance.choice(WORDS[5:]) for _ in range(4)) + "," + "xy"[i % 2] for i in range(8)]
    (directory / "train.csv").write_text("\n".join(["text,label", *rows]) + "\n")


class Undisturbed:
    """A run without faults: what its checkpoints hold, its weights, and which calls it makes."""

    def __init__(self, directory):
        prepare(directory)
        self.directory = directory
        self.counts = {}
        here = self.new_directory("undisturbed")
        succeed(*TRAIN, cwd=here)
        self.checkpoints = contents(here / "run")
        assert len(self.checkpoints) == 2, self.checkpoints.keys()
        self.weights = facts_of(here / "run")["weights_sha256"]

    def new_directory(self, what):
        """Of a name that is as long as any other's: the options in a checkpoint have it."""
        here = self.directory / hashlib.sha256(what.encode()).hexdigest()[:16]
        here.mkdir()
        return here

    def count(self, calls):
        """How many calls of these families a run makes on its checkpoints."""
        if calls not in self.counts:
            here = self.new_directory("count " + calls)
            succeed(*TRAIN, cwd=here, env=Fault(calls, PATH).environment(here / "calls"))
            self.counts[calls] = len(calls_in(here / "calls"))
        return self.counts[calls]

    def examine(self, fault):
        """How the run ended; an error if what it left is wrong."""
        here = self.new_directory(str(fault))
        out = here / "run"
        result = run(*TRAIN, cwd=here, env=fault.environment(here / "calls"))
        failed = [call for call in calls_in(here / "calls") if call.fault]
        assert failed, "no call failed"
        others = self.others(out)
        if fault.kind in ("lost", "flip"):
            # Of bytes that no reader of the file needs, nobody can tell: the run must not differ by them.
            for name in others:
                self.goes_on_from(out, name)
        else:
            assert not others, f"{others} are not those of an undisturbed run"
        if result.code == 4:
            self.was_told(result, out, failed[0])
        elif result.code == 0:
            assert contents(out).keys() == self.checkpoints.keys()
        else:
            assert result.code == -signal.SIGKILL and fault.kind in ("kill", "torn"), result
        if result.code != 0:
            again = run(*TRAIN, "--resume", cwd=here)
            assert again.code == 0, again
            assert not self.others(out), f"{self.others(out)} are not those of an undisturbed run"
        assert not temporaries(out)
        assert facts_of(out)["weights_sha256"] == self.weights, "other weights"
        return {0: "exit 0", 4: "exit 4"}.get(result.code, "killed")

    def was_told(self, result, out, call):
        """One line, with the system's reason; nothing is half done, and the checkpoint before is there."""
        lines = result.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("finetune: error: run/checkpoints/step-0000000"), result
        assert ".tmp" not in lines[0] and len(lines[0]) < 300, lines[0]
        assert ": cannot be written: " in lines[0] or ": cannot be read: " in lines[0], lines[0]
        if call.function.startswith(("pwrite", "ftruncate", "close", "fsync", "rename")):
            reasons = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}
            assert reasons.get(call.fault, "") in lines[0], lines[0]
        assert not temporaries(out), temporaries(out)
        if "step-00000004" in call.path:
            assert "step-00000002.h5" in contents(out), "the checkpoint before is gone"

    def others(self, out):
        """Names of checkpoints that do not hold what those of the undisturbed run hold."""
        return [name for name, content in contents(out).items() if content != self.checkpoints[name]]

    def goes_on_from(self, out, name):
        """A copy of the run goes on from this checkpoint to the weights of the undisturbed run."""
        here = self.new_directory(f"{out} from {name}")
        (here / "run/checkpoints").mkdir(parents=True)
        shutil.copy(out / "config.toml", here / "run")
        shutil.copy(out / "checkpoints" / name, here / "run/checkpoints")
        again = run(*TRAIN, "--resume", cwd=here)
        assert again.code == 0 and facts_of(here / "run")["weights_sha256"] == self.weights, f"{name}: {again}"


def contents(out):
    return {path.name: checkpoint_content(path) for path in (out / "checkpoints").glob("*.h5")}


def temporaries(out):
    return [path.name for path in out.rglob("*") if ".tmp" in path.name]


def test_a_write_that_fails(directory):
    """Once, as a disk may, or from then on, as when it is full. A write that is cut short is continued."""
    undisturbed = Undisturbed(directory)
    count = undisturbed.count("write")
    assert count > 200, count
    once = walk(undisturbed.examine, each(Fault("write", PATH, "EIO"), count, 24))
    assert set(once) == {"exit 4"}, Counter(once)
    full = walk(undisturbed.examine, each(Fault("write", PATH, "ENOSPC", times=0), count, 8))
    assert set(full) == {"exit 4"}, Counter(full)
    short = walk(undisturbed.examine, each(Fault("write", PATH, "short"), count, 6))
    assert set(short) == {"exit 0"}, Counter(short)


def test_data_that_are_lost_or_wrong(directory):
    """The system says that all is well: what is read back tells. Some bytes are read by nobody."""
    undisturbed = Undisturbed(directory)
    for calls, kind, most in (("write", "lost", 8), ("write", "flip", 8), ("read", "flip", 6)):
        endings = walk(undisturbed.examine, each(Fault(calls, PATH, kind), undisturbed.count(calls), most))
        assert endings.count("exit 4") > len(endings) / 2, Counter(endings)


def test_other_calls_that_fail(directory):
    undisturbed = Undisturbed(directory)
    for calls, most in {"open": 6, "read": 5, "close": 6, "sync": 2, "rename": 2, "truncate": 4}.items():
        walk(undisturbed.examine, each(Fault(calls, PATH, "EIO"), undisturbed.count(calls), most))


def test_a_model_that_was_read_from_hdf5(directory):
    """The library was at work before the checkpoint's writer: at the exit it must leave alone what has failed."""
    need_module()
    need("golden/formats/tensorflow-h5", "golden/trajectory-classification-train.csv")
    for nth in (30, 60, 120):
        out = directory / f"run-{nth}"
        fault = Fault("write", f"{out}/checkpoints/step-", "EIO", nth=nth, times=0)
        fail(4, "train", "--model", GOLDEN / "formats/tensorflow-h5", "--train",
             GOLDEN / "trajectory-classification-train.csv", "--label-column", "category", "--reinit-head",
             "--max-steps", 2, "--output", out, "--quiet", env=fault.environment(directory / "calls"),
             words=[f"{out}/checkpoints/step-00000002.h5: cannot be written: Input/output error"])
        assert not list((out / "checkpoints").iterdir())


def test_a_process_that_is_killed(directory):
    undisturbed = Undisturbed(directory)
    count = undisturbed.count("all")
    killed = walk(undisturbed.examine, each(Fault("all", PATH, "kill"), count, 8))
    torn = walk(undisturbed.examine, each(Fault("write", PATH, "torn"), undisturbed.count("write"), 4))
    assert set(killed + torn) == {"killed"}, Counter(killed + torn)


main(globals())
