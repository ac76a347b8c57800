"""Processes that run as long as the soak: a predict that answers, a training that pauses."""
import os
import queue
import random
import signal
import subprocess
import threading
import time

from commands import BINARY, Finding, memory_and_descriptors
from data import texts

PATIENCE = 300  # seconds
AT_ONCE = 64  # rows in flight
REMEMBERED = 250_000  # rows after which predict remembers as many texts as it ever will: 2^15, by their hash
FIXED_ROWS, NEW_ROWS = 200, 600
STEPS = 40  # of the training, a round


class StreamingPredict:
    """Sends rows to its standard input and reads answers from its standard output."""

    def __init__(self, commands, model, words):
        self.words = words
        self.process = subprocess.Popen(
            [BINARY, "predict", "--model", str(model), "--input", "-", "--input-format", "text", "--output", "-",
             "--stream", "--threads", "1", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=commands.environment)
        commands.lasting.add(self.process.pid)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()
        self.fixed = texts(random.Random("fixed"), words, FIXED_ROWS)
        self.expected = None
        self.rows = 0

    def answers(self, rows):
        found = []
        for at in range(0, len(rows), AT_ONCE):
            part = rows[at:at + AT_ONCE]
            self.process.stdin.write("".join(f"{row}\n" for row in part).encode())
            self.process.stdin.flush()
            if self.rows == 0:
                self.line()  # the header
            self.rows += len(part)
            found += [self.line() for _ in part]
        return found

    def line(self):
        try:
            return self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise Finding(f"the lasting predict does not answer any more, after {self.rows} rows") from None

    def warm_up(self):
        self.answers(texts(random.Random("warm up"), self.words, REMEMBERED))

    def ask(self, seed):
        """New texts, and constant ones with constant answers. Returns its memory and descriptors."""
        self.answers(texts(random.Random(f"asked {seed}"), self.words, NEW_ROWS))
        found = self.answers(self.fixed)
        self.expected = self.expected or found
        if found != self.expected:
            raise Finding("the lasting predict answers the same rows in another way")
        return memory_and_descriptors(self.process.pid)

    def end(self):
        self.process.stdin.close()
        if self.process.wait(timeout=PATIENCE) != 0:
            raise Finding(f"the lasting predict ends with {self.process.returncode}")


class PausedTraining:
    """A training that evaluates and saves often, and is stopped between its turns."""

    def __init__(self, commands, output, words):
        self.output = output
        self.process = subprocess.Popen([BINARY, *map(str, words), "--output", str(output)], env=commands.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        commands.lasting.add(self.process.pid)
        self.go_on()

    def steps(self):
        path = self.output / "metrics.jsonl"
        return path.read_bytes().count(b'"loss"') if path.exists() else 0

    def go_on(self):
        """Runs some more steps. Returns its memory and descriptors."""
        goal, deadline = self.steps() + STEPS, time.monotonic() + PATIENCE
        os.kill(self.process.pid, signal.SIGCONT)
        while self.steps() < goal:
            if self.process.poll() is not None:
                raise Finding(f"the lasting training ends with {self.process.returncode}")
            if time.monotonic() > deadline:
                raise Finding(f"the lasting training does not come to step {goal}")
            time.sleep(0.02)
        os.kill(self.process.pid, signal.SIGSTOP)
        return memory_and_descriptors(self.process.pid)

    def end(self):
        """Stops it, with a checkpoint as promised."""
        os.kill(self.process.pid, signal.SIGTERM)
        os.kill(self.process.pid, signal.SIGCONT)
        if self.process.wait(timeout=PATIENCE) != 85:
            raise Finding(f"the lasting training ends with {self.process.returncode} in place of 85")
        looked = subprocess.run([BINARY, "inspect", self.output], capture_output=True, text=True, timeout=PATIENCE)
        if looked.returncode != 0:
            raise Finding(f"what the lasting training leaves cannot be read: {looked.stderr}")
