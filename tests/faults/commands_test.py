"""Commands in which any call on files fails: they report it, or the result is as without the fault.

Files are compared with an undisturbed run's, and the command is repeated. A sample; scripts/faults.sh does all.
"""
import shutil
import signal

from commands import CHANGES, COMMANDS
from contents import contents
from faults import MOST, WHOLE, Fault, Wrong, each, need_module, walk
from harness import main, need
from tiny import prepare
from walk import Undisturbed, of_directory

# Calls, how they fail, and the sample's size.
WALKS = (("write", "EIO", 1, 5), ("write,truncate,mkdir", "ENOSPC", 0, 4), ("write", "short", 1, 2),
         ("write", "torn", 1, 2), ("read", "EIO", 1, 4), ("read", "short", 1, 2), ("open", "EIO", 1, 5),
         ("open", "EMFILE", 1, 2), ("close", "EIO", 1, 3), ("sync", "EIO", 1, 3), ("rename", "EIO", 1, 2),
         ("rename", "ENOSPC", 1, 2), ("mmap", "ENOMEM", 1, 2), ("truncate", "ENOSPC", 1, 2), ("truncate", "EIO", 1, 2),
         ("mkdir", "ENOSPC", 1, 2), ("unlink", "EIO", 1, 2), ("chmod", "EIO", 1, 2), (CHANGES, "EIO", 0, 3), (CHANGES, "kill", 1, 5))


MOST_OF_ALL = {"short": 100, "torn": 100, "EMFILE": 60}  # spread over the whole walk; other faults: every call
READING = tuple(walk for walk in WALKS if walk[0] in ("read", "open", "close", "mmap"))


def walk_over(directory, *names, share=1.0, walks=WALKS):
    """`share`: of the sample's size."""
    need_module()
    prepare(directory)
    wrong = []
    for name in names:
        undisturbed = Undisturbed(directory, COMMANDS[name])
        for calls, kind, times, most in walks:
            fault = Fault(calls, f"{directory}/", kind, times=times)
            most = min(MOST, MOST_OF_ALL.get(kind, MOST)) if WHOLE else max(1, round(share * most))
            count = undisturbed.count(calls)
            try:
                walk(undisturbed.examine, each(fault, count, most), name, count)
            except AssertionError as error:
                wrong.append(f"{name}, {calls}, {kind}: {error}")
        undisturbed.inputs_are_as_before()
    assert not wrong, "\n".join(wrong)


def test_train(directory):
    walk_over(directory, "train")


def test_train_over_a_run(directory):
    """Killed while it removes the earlier run: a finished run still has its model; one without resumes or restarts."""
    need_module()
    prepare(directory)
    undisturbed = Undisturbed(directory, COMMANDS["train over a run"])

    def examine(fault):
        here = undisturbed.new_directory(str(fault))
        assert undisturbed.run(here, fault).code == -signal.SIGKILL
        found = contents(here, ("run",))
        if "run/metrics.json" in found:
            models = [of_directory(of, "run/model") for of in (found, undisturbed.earlier, undisturbed.expected)]
            if models[0] not in models[1:]:
                raise Wrong("damaged file", f"a run that has ended is without its model: {sorted(models[0])}")
        undisturbed.do_again(here)
        shutil.rmtree(here)
        return "killed"
    fault = Fault("unlink,sync,rename", f"{directory}/", "kill")
    count = undisturbed.count(fault.calls)
    walk(examine, each(fault, count, MOST if WHOLE else 6), "train over a run", count)
    undisturbed.inputs_are_as_before()


def test_resume(directory):
    walk_over(directory, "resume", share=0.5)


def test_train_of_questions(directory):
    walk_over(directory, "train questions", share=0.2)


def test_evaluate(directory):
    walk_over(directory, "evaluate", "evaluate questions", share=0.4)


def test_predict(directory):
    walk_over(directory, "predict", "predict questions", share=0.4)


def test_files_without_a_name(directory):
    """If an unnamed file is impossible, one that is briefly named is no alternative: its name might stay."""
    need_module()
    prepare(directory)
    undisturbed = Undisturbed(directory, COMMANDS["evaluate"])
    fault = Fault("open,unlink", f"{directory}/tmp", times=0)
    count = undisturbed.count("open", f"{directory}/tmp")
    assert count > 0
    walk(undisturbed.examine, each(fault, count, MOST), "evaluate", count)
    undisturbed.inputs_are_as_before()


def test_convert(directory):
    walk_over(directory, "convert", share=0.5)


def test_convert_from_other_formats(directory):
    formats = [name for name in COMMANDS if name.startswith("convert ")]
    need(*(f"golden/formats/{name.split(' ')[1]}" for name in formats))
    walk_over(directory, *formats, share=0.2, walks=READING)


main(globals())
