"""A soak (scripts/soak.sh) detects growth, and files and processes that are left behind."""
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import commands
from commands import Commands, Finding, become_subreaper, descendants
from data import LABELS, RoundData
from trends import Series, write_report

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from harness import main  # noqa: E402

WORDS = [a + b + c for a in "abcdefgh" for b in "aeiou" for c in "klmnprstvxyzbdf"]


def of(values, memory=True):
    return Series("x", memory, values)


def test_growth_of_memory_is_found(_):
    generator = random.Random(1)
    noise = [40_000 + generator.uniform(-400, 400) for _ in range(60)]
    assert of(noise).is_flat()
    assert of([*noise[:30], 60_000, *noise[31:]]).is_flat(), "one round is no trend"
    assert of([90_000] * 5 + noise).is_flat(), "nor is a warm-up"
    assert not of([value + 16 * i for i, value in enumerate(noise)]).is_flat(), "some 1.5 %"
    assert not of([value - 16 * i for i, value in enumerate(noise)]).is_flat()
    assert "+1." in of([value + 16 * i for i, value in enumerate(noise)]).row()
    assert "too few" in of([1, 2, 3]).row()


def test_growth_of_descriptors_is_found(_):
    assert of([8, 9, 8, 10] * 10, False).is_flat()
    assert not of([8 + i // 10 for i in range(40)], False).is_flat()
    assert not of([0] * 30 + [1] * 20, False).is_flat()
    assert of([8] * 30 + [9, 8, 10] * 10, False).is_flat(), "a file that was being written"


def test_what_is_left_is_found(directory):
    watch = Commands(directory, random.Random(1))
    commands.GRACE = 0.3  # of others' files beside ours some are found, too
    assert watch.left_files(directory)[1:] == ([], [])
    shared = Path(f"/dev/shm/finetune-soak-test-{os.getpid()}")
    try:
        with open(shared, "w"):
            assert shared.name not in watch.left_files(directory)[0], "it is still open"
        assert shared.name in watch.left_files(directory)[0]
        watch.forget()
        assert shared.name not in watch.left_files(directory)[0]
    finally:
        shared.unlink()
    (watch.temporary / "rows").touch()
    (directory / "run").mkdir()
    (directory / "run/model.tmp.0123456789abcdef").touch()
    assert watch.left_files(directory)[1:] == (["rows"], [str(directory / "run/model.tmp.0123456789abcdef")])
    assert watch.left_files(directory, directory / "run")[2] == []


def test_processes_that_are_left_are_found(directory):
    watch = Commands(directory, random.Random(1))
    commands.GRACE = 30
    become_subreaper()
    subprocess.run(["sh", "-c", "sleep 0.01 & exit"], check=True)
    watch.nothing_runs(["a command"])
    commands.GRACE = 0.3
    subprocess.run(["sh", "-c", "sleep 60 & exit"], check=True)
    left, = descendants(os.getpid())
    try:
        watch.nothing_runs(["a command"])
        raise AssertionError("it is not found")
    except Finding as finding:
        assert f"{left}: 'S'" in str(finding) and "a command" in str(finding), finding
    watch.lasting.add(left)
    watch.nothing_runs(["a command"])
    os.kill(left, signal.SIGKILL)
    os.waitpid(left, 0)


def test_kills_and_measurements(directory):
    watch = Commands(directory, random.Random(1))
    outcome = watch.run("predict", "--input", "-", "--output", directory / "out", output=directory / "out")
    assert outcome.code == 2 and "--model" in outcome.text and not outcome.killed, outcome
    os.mkfifo(directory / "fifo")
    holder = os.open(directory / "fifo", os.O_RDWR)
    outcome = watch.run("score", "--data", directory / "fifo", "--predictions", directory / "fifo",
                        output=directory / "fifo", kill_after=0.2)
    os.close(holder)
    assert outcome.killed and outcome.code == -signal.SIGKILL and watch.kills == 1, outcome
    assert 1000 < outcome.peak_kib < 25_000, outcome


def test_rounds_have_other_data_of_the_same_size(directory):
    read = {seed: RoundData(directory / str(seed), seed, WORDS).train.read_text().splitlines() for seed in (1, 2)}
    assert read[1] != read[2] and RoundData(directory / "again", 1, WORDS).train.read_text().splitlines() == read[1]
    for rows in read.values():
        assert {row.rpartition(",")[2] for row in rows[1:]} == set(LABELS)
    lengths = [sorted(len(row.split()) for row in rows) for rows in read.values()]
    assert lengths[0] == lengths[1]


def test_report(directory):
    (directory / "runs.csv").write_text("kind,machine,date,commit,summary\nfuzz,m,d,c,kept\nsoak,m,d,c,old\n")
    series = [Series("train: memory", True, [1024.0] * 12), Series("descriptors", False, [4] * 12)]
    write_report(directory, "2 rounds.", series)
    assert (directory / "soak.csv").read_text().splitlines() == [
        'what,unit,first third,last third,"change, %",at most', "train: memory,MiB,1.0,1.0,+0.00,",
        "descriptors,,4,4,,4"
    ]
    runs = (directory / "runs.csv").read_text()
    assert "fuzz,m,d,c,kept\nsoak," in runs and "2 rounds." in runs and "old" not in runs, runs


main(globals())
