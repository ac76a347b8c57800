"""Checkpoints with lost or wrong bytes although the system reports success.

A checkpoint counts only after the bytes that readers need were read back. Damage in other bytes is undetectable, but
a run that resumes from them must not differ.
"""
import shutil
from collections import Counter

from commands import TWO_CHECKPOINTS, Command
from contents import contents
from faults import MOST, WHOLE, Fault, Wrong, calls_in, each, need_module, walk
from harness import GOLDEN, facts_of, fail, main, need
from tiny import prepare
from walk import Undisturbed, differences

PATH = "/run/checkpoints/step-"


class Checkpoints(Undisturbed):
    """A run with two checkpoints."""

    def __init__(self, root):
        need_module()
        prepare(root)
        super().__init__(root, Command("two checkpoints", TWO_CHECKPOINTS, ("run",), again=("--resume",)))
        here = self.new_directory("of weights")
        self.run(here)
        self.weights = facts_of(here / "run")["weights_sha256"]

    def examine(self, fault):
        """Returns how the run ended; raises Wrong if its files are wrong."""
        here = self.new_directory(str(fault))
        result = self.run(here, fault)
        ending = self.ending(result, fault)
        failed = [call for call in calls_in(f"{here}.calls") if call.fault]
        assert failed, "no call failed"
        for name in differences(contents(here, ["run/checkpoints"]), self.expected):
            if name.endswith(".h5") and (here / name).exists():
                self.goes_on_from(here, name)
        if result.code == 0:
            if facts_of(here / "run")["weights_sha256"] != self.weights:
                raise Wrong("silent difference", "other weights")
        else:
            self.is_told(result, failed, fault)
            if "step-00000004" in failed[0].path and not (here / "run/checkpoints/step-00000002.h5").exists():
                raise Wrong("damaged file", "the checkpoint before is gone")
            self.do_again(here)
        return ending

    def goes_on_from(self, before, name):
        """A copy of the run resumes from this checkpoint and gets the weights of the undisturbed run."""
        here = self.new_directory(f"{before} from {name}")
        (here / "run/checkpoints").mkdir(parents=True)
        shutil.copy(before / "run/config.toml", here / "run")
        shutil.copy(before / name, here / name)
        again = self.run(here, more=self.command.again)
        if again.code != 0 or facts_of(here / "run")["weights_sha256"] != self.weights:
            raise Wrong("silent difference", f"going on from {name}: {again!r}")


def test_data_that_are_lost_or_wrong(directory):
    checkpoints = Checkpoints(directory)
    for calls, kind, most in (("write", "lost", 8), ("write", "flip", 8), ("read", "flip", 6)):
        count = checkpoints.count(calls, PATH)
        assert count > 200, count
        endings = walk(checkpoints.examine, each(Fault(calls, PATH, kind), count, MOST if WHOLE else most),
                        "checkpoints", count)
        assert endings.count("exit 4") > len(endings) / 2, Counter(endings)


def test_a_model_that_was_read_from_hdf5(directory):
    """The library was used before the writer: at exit it must not touch files whose writing failed."""
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


main(globals())
