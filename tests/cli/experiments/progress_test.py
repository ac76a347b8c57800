"""The progress line at every terminal width, also when the width changes; colours; help."""
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN, linear_model_of, write
from harness import BINARY, PATIENCE, fail, main, need, succeed
from terminal import Screen, Terminal

DATA = "golden/trajectory-classification-train.csv"


def command(out, *more):
    return [BINARY, "train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--recipe",
            "hf", "--output", out, *more]


def one_line(screen):
    """The drawing is alone on the last row, narrower than it, with no remains of earlier ones above."""
    row = screen.rows[screen.row]
    assert len(row) < screen.columns and screen.column == 0 and not screen.full, (screen.columns, row)
    assert len(screen.rows) == screen.row + 1, screen.rows[screen.row:]
    above = [line for line in screen.rows[:screen.row] if re.match(r"step \d+/|.* samples/s |evaluating ", line)]
    assert not above, above
    return row


def drawn(terminal, seconds=PATIENCE):
    """The next complete drawing of a step."""
    deadline = time.time() + seconds
    while time.time() < deadline and terminal.read():
        if terminal.text.endswith("\x1b[J\r") and one_line(terminal.screen).startswith("step "):
            return one_line(terminal.screen)
    raise AssertionError(terminal.text[-500:])


def test_the_screen_of_these_tests(directory):
    screen = Screen(10)
    screen.feed("a\r\nstep 1 of 9, too long\x1b[J\r")  # like a program that ignores the width
    assert screen.rows == ["a", "step 1 of ", "9, too lon", "g"] and (screen.row, screen.column) == (3, 0)
    screen = Screen(30)
    screen.feed("a\r\nstep 1 of 9, too long\x1b[J\r")
    screen.resize(10)
    assert screen.rows == ["a", "step 1 of ", "9, too lon", "g"] and (screen.row, screen.column) == (1, 0)
    screen.feed("\rstep 2\x1b[J\r")
    assert screen.rows == ["a", "step 2"], screen.rows


def test_every_width(directory):
    need(DATA)
    parts = {40: ("step", "remaining"), 80: ("step", "epoch", "loss", "samples/s", "remaining"),
             100: ("step", "epoch", "loss", "samples/s", "tokens/s", "remaining"),
             200: ("step", "epoch", "loss", "samples/s", "tokens/s", "remaining")}
    for columns, words in parts.items():
        terminal = Terminal(command(directory / str(columns), "--max-steps", 600, "--eval-every", 300), columns)
        rows = [drawn(terminal) for _ in range(3)]
        assert all(word in row for row in rows for word in words), (columns, rows)
        assert terminal.end() == 0
        screen = terminal.screen
        text = "".join(row + ("" if goes_on else "\n") for row, goes_on in zip(screen.rows, screen.goes_on))
        assert not re.search(r"^step \d+/|samples/s  ", text, re.MULTILINE), text
        # Evaluations are rows under one header, and fit 80 columns; on 40 some are left out.
        whole, fitted = r" +300( +\d+\.\d{4,7}){4} +\d:\d\d  best$", r"( +\d+\.\d{4,7}){2} +\d:\d\d$"
        header = [line for line in text.splitlines() if line.split()[:1] == ["epoch"]]
        rows = re.findall(r"^ +10\.00" + (whole if columns >= 80 else fitted), text, re.MULTILINE)
        assert len(header) == 1 and len(rows) == 1 and len(header[0]) < 80, text


def test_the_width_changes(directory):
    need(DATA)
    for lays_out in (True, False):
        terminal = Terminal(command(directory / str(lays_out), "--max-steps", 100000, "--eval-every", 50000), 100)
        assert "tokens/s" in drawn(terminal)
        for columns, there in ((50, False), (30, False), (200, True), (60, False), (100, True)):
            terminal.resize(columns, lays_out)
            drawn(terminal)  # the drawing caused by the change
            row = drawn(terminal)
            assert ("tokens/s" in row) == there, (columns, row)
        assert terminal.end(signal.SIGTERM) == 85
        assert not [row for row in terminal.screen.rows if row.startswith("step ")], terminal.screen.rows


def test_without_a_terminal(directory):
    need(DATA)
    result = succeed(*command(directory / "pipe", "--max-steps", 20)[1:])
    assert "step 20/20" in result.err and "step 1/20" not in result.err, result  # a line each five seconds
    assert "\x1b" not in result.err and "\r" not in result.err and "tokens/s" in result.err, result
    terminal = Terminal(command(directory / "dumb", "--max-steps", 20), 80, {"TERM": "dumb"})
    assert terminal.end() == 0 and "\x1b" not in terminal.text, terminal.text


def broken_words(screen):
    """Rows whose text goes on in the next row, but for tables, commands, and words of a row's length."""
    return [row for row, goes_on in zip(screen.rows, screen.goes_on) if goes_on and "  " not in row and " " in row]


def test_prose_is_broken_at_blanks(directory):
    """On a terminal each line ends before its width; a pipe and log.txt get it whole."""
    need(DATA)
    os.chdir(directory)  # short paths
    run = command("run", "--max-steps", 20, "--overwrite")
    piped = succeed(*run[1:])
    whole = [line for line in (piped.err + piped.out).splitlines() if len(line) > 80 and "  " not in line]
    assert whole, piped
    for columns in (30, 40, 80, 500):
        terminal = Terminal(run, columns)
        assert terminal.end() == 0, terminal.text
        rows = terminal.screen.rows
        if columns >= 40:
            assert not broken_words(terminal.screen), rows
            assert max(map(len, rows)) <= columns, rows
        long = [row for row in rows if len(row) > 80 and "  " not in row]
        assert bool(long) == (columns == 500), rows
        told = "".join(rows).replace(" ", "")
        logged = (directory / "run/log.txt").read_text()
        for line in whole:
            begin = line[:50]  # what follows may be a time
            assert begin in logged and begin.replace(" ", "") in told, (line, rows)
    missing = [BINARY, "evaluate", "--model", "no-such-run", "--data", EVAL]
    terminal = Terminal(missing, 60)
    assert terminal.end() == 4 and not broken_words(terminal.screen), terminal.screen.rows
    assert terminal.screen.rows[0].startswith("finetune: error: no-such-run: no such directory")
    assert all(row.startswith("  ") for row in terminal.screen.rows[1:-1]), terminal.screen.rows
    assert len(fail(4, *missing[1:]).splitlines()) == 1


def broken(screen):
    """Rows that the terminal broke, though their last cell has blanks: not the tables of tensors."""
    rows = [row for row, goes_on in zip(screen.rows, screen.goes_on) if goes_on]
    return [row for row in rows if " " in row.strip().rpartition("  ")[2] and " x " not in row]


def test_tables_and_results_fit_narrow_terminals(directory):
    need(DATA)
    os.chdir(directory)
    long = "runs/" + "a-name-of-many-words-" * 2
    run = command(long, "--max-steps", 20, "--overwrite")
    piped = succeed(*run[1:])
    line = "next:  finetune predict --model " + long + "/model --input FILE --output FILE\n"
    assert line in piped.out, piped
    for columns in (40, 60, 80):
        train = Terminal(run, columns)
        assert train.end() == 0 and not broken(train.screen), train.screen.rows
        header = next(row for row in train.screen.rows if row.startswith("  epoch"))
        assert header.endswith("time") and ("macro F1" in header) == (columns == 80), header
        assert "macro F1   time" in Path(long, "log.txt").read_text()
        rows = zip(train.screen.rows, train.screen.goes_on)
        told = re.sub(r" \\\n +", " ", "".join(row + ("" if goes_on else "\n") for row, goes_on in rows))
        assert line in told and f"\n       finetune report {long} --output report.html" in told, train.screen.rows
        for words in (["doctor"], ["plan", *run[2:run.index("--output")]], ["inspect", MODEL], ["inspect", long],
                      ["convert", "--model", MODEL, "--output", f"converted-{columns}"]):
            shown = Terminal([BINARY, *words], columns)
            assert shown.end() == 0 and not broken(shown.screen), (columns, words, shown.screen.rows)
            if words == ["doctor"] and columns == 40:
                assert any(row.startswith(" " * 19) for row in shown.screen.rows), shown.screen.rows


def test_check_shows_progress(directory):
    """The stage and its time, after two seconds, and nothing of it at the end."""
    draw = random.Random(1)
    rows = [f"SHOP {draw.randrange(3000)} w{(i * 7 + draw.randrange(30)) % 200} REF {draw.randrange(10**6)},c{i % 60}"
            for i in range(5000)]
    data = write(directory / "rows.csv", "text,label\n" + "\n".join(rows) + "\n")
    line = [BINARY, "check", "--train", data]
    terminal = Terminal(line, 60)
    # However fast the machine is, the linear model takes three seconds.
    while not (child := linear_model_of(terminal.process)):
        assert terminal.read(0.001), terminal.text
    os.kill(child, signal.SIGSTOP)
    time.sleep(3)
    os.kill(child, signal.SIGCONT)
    assert terminal.end() == 0, terminal.text
    assert re.search(r"checking: training the n-gram baseline  \d:\d\d\x1b\[J\r", terminal.text), terminal.text
    assert not [row for row in terminal.screen.rows if row.startswith("checking")], terminal.screen.rows
    short = write(directory / "short.csv", "text,label\n" + "\n".join(rows[:500]) + "\n")
    succeed("check", "--train", short, "--no-progress")


def test_predict_shows_progress(directory):
    """Rows, rate and warnings while it works: from a pipe of unknown length, and from a file."""
    need(DATA)
    rows, fifo = "".join(f"SHOP {i} with a name that is too long for eight tokens\n" for i in range(5000)), directory / "rows"
    os.mkfifo(fifo)
    line = [BINARY, "predict", "--model", MODEL, "--input", fifo, "--input-format", "text", "--output",
            directory / "labels.csv", "--overwrite", "--max-length", 8]
    for more, shown in (([], True), (["--no-progress"], False), (["--quiet"], False)):
        terminal = Terminal([*line, *more], 80)
        with open(fifo, "w") as writer:
            writer.write(rows)
            writer.flush()
            time.sleep(2.5)  # nothing is shown in the first two seconds
            writer.write(rows)
            writer.flush()
            deadline = time.time() + 60
            while shown and time.time() < deadline and "after " not in terminal.text:
                terminal.read()
        assert terminal.end() == 0, terminal.text
        drawn_rows = re.findall(r"predicted ([\d,]+) rows  [\d.]+ rows/s\x1b\[J\r", terminal.text)
        assert bool(drawn_rows) == shown, terminal.text
        if shown:
            early = re.search(r"after \d{4,} rows: warning: input: .* cut", terminal.text)
            assert early and early.end() < terminal.text.index("predicted 10,000 rows in"), terminal.text
        assert not [row for row in terminal.screen.rows if row.startswith("predicted") and "rows/s" in row]


def test_colours(directory):
    line = [BINARY, "train", "--lrr", "1"]
    for env, colours in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)):
        terminal = Terminal(line, 80, env)
        assert terminal.end() == 2
        assert ("\x1b[" in terminal.text) == colours, (env, terminal.text)
        shown = "".join(terminal.screen.rows)
        assert shown.startswith("finetune: error: unknown option '--lrr' (did you mean --lr?)"), shown
    assert "\x1b" not in fail(2, "train", "--lrr", "1")


def test_help_and_version(directory):
    assert succeed("-V").out == succeed("--version").out
    assert succeed("help").out == succeed("--help").out
    for words in (["train"], ["bench", "step"], ["compare"]):
        assert succeed("help", *words).out == succeed(*words, "--help").out, words
    fail(2, "help", "trian", words=["'trian'", "did you mean train?"])
    fail(2, "hlep", words=["'hlep'", "did you mean help?"])


main(globals())
