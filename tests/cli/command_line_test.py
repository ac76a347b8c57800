"""Help, usage errors, standard output, doctor."""
import os
import re
import subprocess
from pathlib import Path

from fixtures import EVAL, MODEL, MODELS, predict, write
from harness import BINARY, fail, main, need, run, succeed

COMMANDS = ("train", "sweep", "evaluate", "predict", "next", "bench", "tokenize", "inspect", "convert", "score", "plan", "doctor",
            "compare", "completion", "check", "report", "adapt")


def test_help_of_every_command(directory):
    general = succeed("--help").out
    for command in COMMANDS:
        assert command in general, command
        short = succeed(command, "--help").out
        assert short == succeed(command, "-h").out and len(short.splitlines()) < 40, (command, short)
        for text in (short, succeed(command, "--help", "all").out):
            assert f"Usage: finetune {command}" in text and "Example" in text, text
            for noise in ("INT", " TEXT", "FLOAT", " ...  ", "POSITIVE", "in [0", "REQUIRED", ":{", "=auto"):
                assert noise not in text, (command, noise, text)
            assert max(map(len, text.splitlines())) <= 80, command
    assert succeed("--version").out.strip().count(".") == 2
    for command in ("step", "ops", "tokenizer", "comm", "layout"):
        for scope in ([], ["all"]):
            lines = succeed("bench", command, "--help", *scope).out.splitlines()
            assert max(map(len, lines)) <= 80 and (scope or len(lines) < 40), (command, lines)
            assert ":{" not in "\n".join(lines), command
    assert len(general.splitlines()) < 40 and max(map(len, general.splitlines())) <= 80, general
    assert "--max-error E" in succeed("evaluate", "--help").out and "--confidence C" in succeed("evaluate", "--help").out
    help_text = succeed("train", "--help", "all").out
    for words in ("[linear]", "--model DIR|FILE", "--train FILE...", "--output DIR", "--baseline FILE",
                  "--label-column NAME", "--multi-label SEP", "--lr X", "--epochs X", "--batch-size N", "--threads N|all",
                  "--time-limit TIME", "--dropout P", "--freeze none|embeddings|N", "--tolerance METRIC=X"):
        assert words in help_text, words


def test_short_help(directory):
    """The common options alone; `all` shows the others, wrapped to $COLUMNS."""
    short, whole = succeed("train", "--help").out, succeed("train", "--help", "all").out
    listed = re.findall(r"^  (--[a-z-]+)", short, re.M)
    count = len(re.findall(r"^  -", whole, re.M))
    assert 12 <= len(listed) <= 18 and f"\nfinetune train --help all shows all {count} options.\n" in short, short
    for option in ("--model", "--train", "--label-column", "--epochs", "--lr", "--output", "--resume"):
        assert option in listed, option
    for command in ("predict", "evaluate"):  # they take --tp under mpirun, which few need
        assert "--tp " not in succeed(command, "--help").out and "--tp N" in succeed(command, "--help", "all").out
    assert succeed("help", "bench", "step", "all").out == succeed("bench", "step", "-h", "all").out
    for line in (["train", "--help", "al"], ["help", "train", "al"], ["help", "train", "al", "all"]):
        fail(2, *line, words=["no help topic 'al'", "finetune train --help takes only all"])
    narrow = succeed("predict", "--help", "all", env={"COLUMNS": "60"}).out
    prose = [line for line in narrow.splitlines() if "finetune" not in line]
    assert 55 < max(map(len, prose)) <= 60, prose


def test_help_at_any_width(directory):
    """However narrow the terminal is, the options are listed: those that are common, or all."""
    lines = [[command] for command in COMMANDS if command != "bench"] + [["bench", "step"], ["bench", "layout"]]
    for line in lines:
        pages = {width: succeed(*line, "--help", env={"COLUMNS": str(width)}).out for width in (40, 60, 66, 80)}
        listed = {width: set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", page, re.M)) for width, page in pages.items()}
        assert all(options and options >= listed[80] - {"--help", "--fail-on-warning"} for options in listed.values()), \
            (line, pages)


def test_examples_at_any_width(directory):
    """Wide examples are folded so that they can be pasted; nothing but a long word is wider than the terminal."""
    def commands(page):
        page = re.sub(r" \\\n +", " ", page.partition("xamples:\n")[2])
        return [line for line in re.findall(r"^  (\S.*?)(?:  .*)?$", page, re.M) if "finetune" in line]

    for command in COMMANDS:
        whole = commands(succeed(command, "--help", "all").out)
        assert whole, command
        for width in (40, 60, 66):
            page = succeed(command, "--help", "all", env={"COLUMNS": str(width)}).out
            wide = [line.strip(" \\") for line in page.splitlines() if len(line) > width]
            wide = [line for line in wide if " " in line and " = " not in line]  # not TOML
            assert all(re.fullmatch(r"--\S+ \S+", line) for line in wide), (command, wide)
            assert commands(page) == whole, (command, width, page)
    narrow = succeed("train", "--help", env={"COLUMNS": "60"}).out
    assert "\n  finetune train --model minilm --train train.csv \\\n      --eval dev.csv" in narrow, narrow
    assert "\n  finetune train --output runs/a --resume\n      # continue after a stop\n" in narrow, narrow


def test_mistakes_on_the_command_line(directory):
    alone = run()
    lines = alone.out.splitlines()
    assert alone.code == 2 and alone.err == "finetune: error: a command is needed, such as finetune train\n", alone
    assert len(lines) <= 22 and max(map(len, lines)) <= 80, "more than a terminal of 80 x 24 shows"
    assert all(re.search(f"^  {command} ", alone.out, re.M) for command in COMMANDS), alone.out
    fail(2, "trian", words=["'trian'", "did you mean train?"])
    fail(2, "frobnicate", words=["predict"])
    fail(2, "--verson", words=["--version"])
    fail(2, "--model", "m", words=["--model: the command comes first: finetune train --model"])
    fail(2, "bench", "stepp", words=["did you mean step?"])
    fail(2, "predict", "--modl", "x", words=["'--modl'", "did you mean --model?"])
    fail(2, "predict", "--xyzzy=1", words=["'--xyzzy'", "finetune predict --help"])
    fail(2, "evaluate", "-k", "3", words=["'-k'"])
    fail(2, "predict", words=["--model", "required"])
    fail(2, "predict", "--model", words=["--model", "value is missing"])
    fail(2, "predict", "--model", "a", "--input", "b", "--output", "c", "extra", words=["'extra'"])
    fail(2, "predict", "--model", "a", "--input", "b", "--output", "c", "--top-k", "two", words=["--top-k", "'two'"])
    fail(2, "predict", "--model", "a", "--input", "b", "--output", "c", "--top-k", "0", words=["--top-k 0", "at least 1"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--threads", "1.5", words=["--threads", "'1.5'"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--threads", "9" * 20, words=["--threads"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--precision", "fp8", words=["'fp8'", "bf16"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--json=maybe", words=["--json", "flag"])
    fail(2, "train", "--epochs", "1", "--epochs", words=["--epochs", "missing"])
    fail(2, "train", "--lr", "fast", words=["--lr", "'fast'"])
    fail(2, "convert", "--model", "a", "--output", "b", "--dtype", "f64", words=["'f64'"])
    fail(4, "predict", "--model", "a\nb", "--input", "b", "--output", "c", words=["a\\nb"])


def test_words_without_their_options(directory):
    """The error shows the complete line to type."""
    data = write(directory / "new rows.csv", "text\nPIZZA\n")
    fail(2, "predict", MODEL, data, "--top-k", "3", words=[
        "unexpected argument", f"type: finetune predict --model {MODEL} --input '{data}' --output - --top-k 3"])
    fail(2, "check", data, words=[f"type: finetune check --train '{data}'"])
    fail(2, "train", data, words=[f"type: finetune train --model MODEL --train '{data}' --output DIR"])
    fail(2, "predict", "HOME DEPOT", words=["type: echo 'HOME DEPOT' | finetune predict --model MODEL --input - --output -"])
    fail(2, data, words=["unknown command", f"type: finetune train --model MODEL --train '{data}'"])


def test_values_that_are_empty_or_missing(directory):
    """Such as an unset variable of a script."""
    model = ["--model", "m"]
    for command, option in (("train", "--train"), ("train", "--eval"), ("train", "--baseline"), ("train", "--text-column"),
                            ("train", "--lr"), ("train", "--output"), ("predict", "--input"), ("evaluate", "--data"),
                            ("evaluate", "--slice"), ("convert", "--output"), ("convert", "--model"), ("plan", "--config")):
        fail(2, command, option, "", words=[f"{option}: "])
        fail(2, command, f"{option}=", "--threads", "1", words=[f"{option}: its value is empty"])
        fail(2, command, option, "--help", words=[f"{option}: its value is missing before --help"])
    fail(2, "compare", "", words=["its value is empty"])
    fail(2, "train", *model, "--eval", "--output=o", words=["--eval: its value is missing before --output=o"])
    fail(4, "predict", "--model", "--no-such-option", "--input", "a", "--output", "b", words=["--no-such-option"])
    fail(4, "predict", "--model=--input", "--input", "a", "--output", "b", words=["--input"])


def test_the_last_value_counts_and_underscores(directory):
    need(*MODELS)
    data = write(directory / "a.txt", "one\n")
    assert predict(data, "--batch_size", "3", "--batch_size", "4").out == predict(data).out
    assert predict(data, "--threads", "all").out == predict(data, "--threads", "1", "--threads", "2").out


def test_standard_output(directory):
    need(*MODELS)
    with open("/dev/full", "w") as full:
        for arguments in (["--help"], ["--version"], ["inspect", MODEL], ["doctor"],
                          ["evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", "--quiet"],
                          ["predict", "--model", MODEL, "--input", EVAL, "--output", "-"],
                          ["tokenize", "--model", MODEL, EVAL]):
            done = subprocess.run([BINARY, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 4 and "No space left" in done.stderr, (arguments, done)
    # The reader of the output exits early: no message, nothing left behind.
    big = write(directory / "big.txt", "some words\n" * 50000)
    for arguments in (["tokenize", "--model", MODEL, big],):
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 141, arguments
    # The reader never existed, for output written in several pieces.
    for arguments in (["inspect", MODEL, "--json"], ["inspect", MODEL], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([BINARY, *map(str, arguments)], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert done.stderr == b"" and done.returncode == 141, (arguments, done)


def test_environment(directory):
    """Variables of src/core/switches.h: in doctor if set, in docs/reference/commands.md, and read nowhere else."""
    project = Path(__file__).resolve().parents[2]
    table = (project / "src/core/switches.h").read_text(encoding="utf-8")
    names = re.findall(r'"(FINETUNE_[A-Z_]+)"', table)
    assert "FINETUNE_ISA" in names and len(names) == len(set(names))
    text = succeed("doctor", env={name: "avx2" if name == "FINETUNE_ISA" else "1" for name in names}).out
    pages = (project / "docs/reference/commands.md").read_text(encoding="utf-8")
    for name in names:
        assert f"\n{name} " in text, name
        assert f"| `{name}` |" in pages, name
    for source in [*project.glob("src/**/*.cpp"), *project.glob("src/**/*.cu"), *project.glob("src/**/*.h")]:
        found = re.findall(r'getenv\("FINETUNE', source.read_text(encoding="utf-8"))
        assert not found, source


def test_doctor(directory):
    text = succeed("doctor").out
    for word in ("finetune", "CPU", "oneDNN", "code path", "CUDA"):
        assert word in text, text
    assert re.search("^processes +not started by mpirun", text, re.M), text
    assert re.search("^verdict +everything that training needs is there$", text, re.M), text
    assert text.splitlines()[-1].startswith("verdict "), text
    lacking = succeed("doctor", env={"TMPDIR": str(directory / "none")}).out.splitlines()[-1]
    assert "training lacks a directory for temporary files" in lacking, lacking
    # The launcher's announced rank does not matter; only how the processes are connected does.
    for rank in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        assert " rank 0 of 1, " in succeed("doctor", env={rank: "0"}).out, rank


main(globals())
