"""Completion in bash, zsh and fish, and the manual pages, compared with --help all."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, PATIENCE, Skip, fail, main, succeed

SCRIPTS = {"bash": "finetune", "zsh": "_finetune", "fish": "finetune.fish"}
PROMPT = "ready>"
FILES, FOLDERS = {"FILE", "GRID"}, {"DIR"}


class Command:
    """What --help all of a command says of its options and commands."""

    def __init__(self, path):
        self.path = path
        self.help = succeed(*path, "--help", "all").out
        self.types = dict(re.findall(r"^  (?:-\w, )?(--[a-z][a-z0-9-]*)(?: (\S+))?", self.help, re.M))
        listed = self.help.partition("Commands:\n")[2].partition("\n\n")[0]
        self.commands = re.findall(r"^  (\w+)", listed, re.M)
        assert len(self.types) >= 1, self.help

    def inside(self):
        yield self
        for name in self.commands:
            if name != "help":
                yield from Command([*self.path, name]).inside()


def every_command():
    commands = list(Command([]).inside())
    assert len(commands) >= 18 and sum(len(c.types) for c in commands) > 250, commands
    return commands


def words_of(type_name):
    return [piece for piece in type_name.split("|") if re.fullmatch(r"[a-z0-9_]+", piece)]


def has_any(type_name, names):
    return any(piece.removesuffix("...") in names for piece in type_name.split("|"))


def script(directory, shell):
    if not shutil.which(shell):
        raise Skip(f"{shell} is not installed")
    path = directory / SCRIPTS[shell]
    path.write_text(succeed("completion", shell).out)
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done
    return path


BASH = r"""
set -u
source "$1"
complete -p finetune > /dev/null || exit 9
compopt() { COMPREPLY+=("<$2>"); }
while IFS= read -r line; do
  read -ra COMP_WORDS <<< "${line%|}"
  [[ $line == *" |" ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _finetune finetune "" ""
  echo "${COMPREPLY[*]-}"
done
"""


class Bash:
    """The words that bash would offer; `...|` marks the cursor at the end of a line."""

    def __init__(self, path):
        self.path = path

    def offers(self, lines):
        done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", self.path], text=True, capture_output=True,
                              input="".join(f"{line}|\n" for line in lines), timeout=PATIENCE)
        assert done.returncode == 0 and not done.stderr, done
        answers = [answer.split() for answer in done.stdout.splitlines()]
        assert len(answers) == len(lines)
        return answers


def test_bash_offers_every_option_and_value(directory):
    bash = Bash(script(directory, "bash"))
    commands = every_command()
    lines = [" ".join(["finetune", *c.path, "-"]) for c in commands]
    for command, offered in zip(commands, bash.offers(lines)):
        expected = {*command.types, "-h"} | ({"-V"} if not command.path else set())
        assert set(offered) == expected, (command.path, expected ^ set(offered))
    options = [(c, name, kind) for c in commands for name, kind in c.types.items() if kind]
    lines = [" ".join(["finetune", *c.path, name, ""]) for c, name, _ in options]
    for (command, name, kind), offered in zip(options, bash.offers(lines)):
        expected = words_of(kind)
        if not expected and has_any(kind, FILES):
            expected = ["<default>"]
        elif not expected and has_any(kind, FOLDERS):
            expected = ["<dirnames>"]
        assert offered == expected, (command.path, name, kind, offered)


def test_bash_knows_where_it_is(directory):
    bash = Bash(script(directory, "bash"))
    top = Command([])
    for line, expected in (
            ("finetune ", [*top.commands, "--help", "-h", "--version", "-V"]),
            ("finetune tr", ["train"]),
            ("finetune help ", top.commands),
            ("finetune help tok", ["tokenize"]),
            ("finetune bench st", ["step"]),
            ("finetune bench step --clock ", ["wall", "cpu"]),
            ("finetune train --task = cl", ["classification"]),
            ("finetune train --task = ", ["classification", "qa", "mlm"]),
            ("finetune train --task q", ["qa"]),
            ("finetune train --dev", ["--device"]),
            ("finetune train --quiet --dev", ["--device"]),
            ("finetune train --train a.csv b", ["<default>"]),  # accepts several
            ("finetune train --output runs --dev", ["--device"]),
            ("finetune train --lr ", []),  # any number
            ("finetune train --lr 1 --schedule c", ["cosine", "constant"]),
            ("finetune compare runs/a ", ["<dirnames>"]),
            ("finetune sweep ", ["<default>"]),
            ("finetune completion ", ["bash", "zsh", "fish"]),
            ("finetune bench step --shape x", ["<dirnames>"]),  # a model directory
            ("finetune nonsense ", [])):
        assert bash.offers([line])[0] == expected, (line, bash.offers([line]))


def typed(command, lines, env=None):
    """A shell in a terminal: whatever `keys` are typed after its prompt, what is `wanted` must be shown. The line is
    then cleared (Ctrl-U)."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "dumb", **(env or {})})

    def read_until(wanted):
        text, until = "", time.monotonic() + PATIENCE
        while not re.search(wanted, text, re.S):
            assert time.monotonic() < until and select.select([terminal], [], [], 20)[0], (wanted, text)
            text += os.read(terminal, 65536).decode("utf-8", "replace")

    try:
        read_until(PROMPT)
        for keys, wanted in lines:
            os.write(terminal, keys.encode())
            read_until(re.escape(wanted))
            os.write(terminal, b"\x15echo x$((1+1))x\r")  # its answer shows that all previous keys were read
            read_until("x2x.*" + PROMPT)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


def test_bash_in_a_terminal(directory):
    path = script(directory, "bash")
    (directory / "rows of May.csv").touch()
    (directory / "somewhere").mkdir()
    start = directory / "start"
    start.write_text(f"PS1='{PROMPT}'\nsource {path}\nbind 'set bell-style none'\ncd {directory}\n")
    typed(["bash", "--noprofile", "--rcfile", str(start), "-i"],
          [("finetune train --train ro\t", "rows\\ of\\ May.csv"), ("finetune train --sched\t", "--schedule "),
           ("finetune train --output some\t", "somewhere/"),
           ("finetune train --schedule=co\ts\t", "--schedule=cosine")])


def test_zsh(directory):
    path = script(directory, "zsh")
    text = path.read_text()
    for command in every_command():
        name = "_".join(["_finetune", *command.path])
        body = re.search(rf"^{name}\(\) {{\n(.*?)^}}", text, re.M | re.S)[1]
        for option, kind in command.types.items():
            assert re.search(rf"'(\(- \*\)|\*)?{option}=?\[", body), (name, option)
            assert not words_of(kind or "") or " ".join(words_of(kind)) in body, (name, option, kind)
    (directory / "some-rows.csv").touch()
    (directory / "somewhere").mkdir()
    # Found once by its name in $fpath, and read once directly.
    (directory / ".zshrc").write_text(f"fpath=({directory} $fpath)\nautoload -U compinit; compinit -u -D\n"
                                      f"PS1='{PROMPT}'\nunsetopt prompt_cr prompt_sp\ncd {directory}\n")
    typed(["zsh", "-i"], [
        ("finetune train --sched\t", "--schedule="), ("finetune train --task c\t", "classification"),
        ("finetune tr\t", "train "), ("finetune train --train some-\t", "some-rows.csv"),
        ("finetune train --train a some-\t", "some-rows.csv"), ("finetune bench st\t--cl\tc\t", "=cpu"),
        ("finetune help tok\t", "tokenize"), ("finetune train --output some\t", "somewhere/"),
        ("finetune bench step --shape min\t", "minilm"), ("finetune compare somew\t", "somewhere/"),
        ("finetune completion f\t", "fish")], {"ZDOTDIR": str(directory)})
    with open(directory / ".zshrc", "a") as out:
        out.write(f"unset '_comps[finetune]'\nsource {path}\n")
    typed(["zsh", "-i"], [("finetune help tok\t", "tokenize")], {"ZDOTDIR": str(directory)})


def test_fish(directory):
    path = script(directory, "fish")
    (directory / "some-rows.csv").touch()
    (directory / "somewhere").mkdir()

    def offers(lines):
        asked = "".join(f"complete -C '{line}'; echo =\n" for line in lines)
        done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; cd {directory}\n{asked}"], text=True,
                              capture_output=True, timeout=PATIENCE, env={**os.environ, "HOME": str(directory)})
        assert done.returncode == 0 and not done.stderr, done
        return [[line.split("\t")[0] for line in part.splitlines()] for part in done.stdout.split("=\n")[:-1]]

    commands = every_command()
    for command, offered in zip(commands, offers([" ".join(["finetune", *c.path, "--"]) for c in commands])):
        assert set(offered) == set(command.types), (command.path, set(offered) ^ set(command.types))
    options = [(c, name, kind) for c in commands for name, kind in c.types.items() if kind]
    for (command, name, kind), offered in zip(options, offers([" ".join(["finetune", *c.path, name, "some"])
                                                               for c, name, _ in options])):
        files = has_any(kind, FILES)
        expected = ["some-rows.csv", "somewhere/"] if files else ["somewhere/"] if has_any(kind, FOLDERS) else []
        if kind.startswith("["):
            continue  # its value follows "=" only
        assert sorted(offered) == expected, (command.path, name, kind, offered)
    for line, expected in (("finetune tr", ["train"]), ("finetune help tok", ["tokenize"]),
                           ("finetune bench st", ["step"]), ("finetune train --task ", ["classification", "mlm", "qa"]),
                           ("finetune train --task=q", ["--task=qa"]), ("finetune completion f", ["fish"]),
                           ("finetune train --train a.csv some-", ["some-rows.csv"]), ("finetune train --lr ", []),
                           ("finetune compare some", ["somewhere/"]), ("finetune sweep some-", ["some-rows.csv"])):
        assert offers([line])[0] == expected, (line, offers([line]))


def test_manual_pages(directory):
    """finetune(1) names every command, whose page has all of its options."""
    main_page = succeed("help", "--man").out
    pages = {"": main_page}
    for command in every_command()[1:]:
        name = command.path[0]
        page = pages.setdefault(name, succeed("help", "--man", name).out if name not in pages else "")
        assert f"\\fBfinetune\\-{name}\\fR(1)" in main_page and all(c.isascii() for c in page), name
        section = page.replace("\\-", "-")
        if command.path[1:]:
            section = section.partition(f"\n.SS {' '.join(command.path)}\n")[2].partition("\n.SS ")[0]
        for option, kind in command.types.items():
            if option != "--help":
                assert re.search(rf"^\\fB{option}\\fR( \\fI{re.escape(kind)}\\fR)?", section, re.M) if kind else \
                    f"\\fB{option}\\fR" in section, (command.path, option)
    for name, page in pages.items():
        if name:
            examples = page.partition("\n.SH EXAMPLES\n")[2].partition("\n.SH")[0].replace("\\-", "-")
            first = re.search(r"^Examples:\n  (.*)", Command([name]).help, re.M)[1]
            assert f".EX\n  {first}\n" in examples.replace("\\e", "\\") and page.count(".SH EXAMPLES") == 1, (name, page)
        for part in page.split("\n.SS "):
            headings = re.findall(r"^\.PP\n(\\fI\w+\\fR)$", part, re.M)
            assert len(headings) == len(set(headings)), (name, headings)
    for name in ("FINETUNE_ISA", "\\fB85\\fR", "finetune predict"):
        assert name in main_page.replace("\\-", "-"), name
    path = directory / "finetune.1"
    path.write_text("".join(pages.values()))
    if not shutil.which("groff"):
        raise Skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c", path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr[:2000]
    shown = re.sub(r".\x08", "", done.stdout)
    for name in ("--micro-batch-tokens N|auto", "EXIT STATUS", "bench step", "mpirun -n 4 finetune train"):
        assert name in shown, name
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
        assert done.returncode == 0 and not done.stderr, done.stderr[:2000]


def test_mistakes(directory):
    fail(2, "completion", "tcsh", words=["tcsh", "bash, zsh, fish"])
    fail(2, "completion", words=["required"])
    fail(2, "help", "--man", "trian", words=["unknown command 'trian'"])
    with open("/dev/full", "w") as full:
        for line in (["completion", "bash"], ["help", "--man"]):
            done = subprocess.run([BINARY, *line], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 4 and "No space left" in done.stderr, done


main(globals())
