#!/usr/bin/env python3
"""Runs every command of docs/guide, in a folder of its own.

usage: guide.py [--write] [--rows N] PROGRAM MODEL

MODEL is the pretrained model that the guide fetches. --write puts the new outputs into the pages. Without it each
command must exit with 0, print something if the page shows something, and print the same `exit code N` lines. --rows
cuts the samples to N rows each, for a test with a tiny model; as its results are worse, --assert's bounds are then 0.

In the pages, a block ```console holds commands (after "$ ") and their output, a block ```sh only commands. A comment
before a block can say: <!-- show: 3 ... 5 -->, show the first 3 and last 5 lines of each output, or <!-- elsewhere:
FILE -->, FILE runs the block. A command that ends with \\, | or && continues on the next line.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "guide").glob("[1-9]-*.md"))
SAMPLES = ("toronto-train.csv", "toronto-dev.csv")
BLOCK = re.compile(r"(?:<!-- (?P<key>show|elsewhere): (?P<value>.*?) -->\n)?"
                   r"```(?P<kind>console|sh)\n(?P<text>.*?)^```$", re.M | re.S)
GOES_ON = re.compile(r"(\\|\||&&)$")
MARK = "\x1e"


class Command:
    def __init__(self, text, shown, cut):
        self.text, self.shown, self.cut = text, shown, cut  # cut: (first, last) lines of the output, or none
        self.output, self.code = "", None


def commands_of(match):
    if match["key"] == "elsewhere":
        return []
    if match["kind"] == "sh":
        return [Command(match["text"], "", None)]
    cut = match["key"] and tuple(int(n) for n in re.fullmatch(r"(\d+) \.\.\. (\d+)", match["value"]).groups())
    commands, in_command = [], False
    for line in match["text"].splitlines():
        if in_command:
            commands[-1].text += line + "\n"
        elif line.startswith("$ "):
            commands.append(Command(line[2:] + "\n", "", cut))
        else:
            commands[-1].shown += line + "\n"
            continue
        in_command = bool(GOES_ON.search(line))
    return commands


def aligned(lines):
    """Returns a table's lines with columns as wide as needed. In `lines`, two or more blanks separate columns."""
    rows = [[line[:3], *re.split(r" {2,}", line[3:].strip())] for line in lines]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    return [row[0] + "  ".join(cell.ljust(width) for cell, width in zip(row[1:], widths[1:])).rstrip() for row in rows]


def without_folder(output, folder):
    """Returns the output as a reader would see it: without the name of this folder, and without a sweep's progress
    lines, whose number depends on the time."""
    lines = [line for line in output.splitlines() if not re.match(r"run \d+/\d+ ", line)]
    is_row = [f"  {folder}/" in line for line in lines]
    shown = [line.replace(f"{folder}/bank/", "") for line in lines]
    if True in is_row:
        first = is_row.index(True)
        table = slice(first - 1, first + is_row[first:].index(False) if False in is_row[first:] else len(lines))
        shown[table] = aligned(shown[table])
    return "".join(line + "\n" for line in shown)


def shortened(output, cut):
    lines = output.splitlines()
    if cut and sum(cut) < len(lines):
        lines = lines[:cut[0]] + ["..."] + (lines[-cut[1]:] if cut[1] else [])
    return "".join(line.rstrip() + "\n" for line in lines)


def with_outputs(match, commands):
    if not commands or match["kind"] == "sh":
        return match[0]
    text = "".join("$ " + command.text + shortened(command.output, command.cut) for command in commands)
    return match[0][:match.start("text") - match.start()] + text + "```"


def run_page(commands, folder, environment):
    """Runs all of a page's commands in one shell, so that `cd` and variables last as they would for a reader."""
    script = "exec 2>&1\n" + "".join(f"printf '\\036'\n{c.text}\nprintf '\\036%d' $?\n" for c in commands)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True)
    parts = done.stdout.split(MARK)
    for number, command in enumerate(commands):
        if len(parts) <= 2 * number + 2:
            command.code = done.returncode
            return
        command.output = without_folder(parts[2 * number + 1], folder)
        command.code = int(parts[2 * number + 2])


def mistakes(page, commands):
    for command in commands:
        where = f"{page.name}: {command.text.splitlines()[0]}"
        if command.code != 0:
            yield f"{where}: exit code {command.code}\n{command.output[-2000:]}"
        elif command.shown and not command.output.strip():
            yield f"{where}: prints nothing"
        codes = [re.findall(r"^exit code \d+$", text, re.M) for text in (command.shown, command.output)]
        if codes[0] != codes[1]:
            yield f"{where}: {codes[1]}, the page has {codes[0]}\n{command.output[-2000:]}"


def prepare(folder, options):
    """Links and copies the files of a checkout that the guide uses."""
    (folder / "scripts").symlink_to(ROOT / "scripts")
    (folder / "data" / "samples").mkdir(parents=True)
    for name in SAMPLES:
        lines = (ROOT / "data" / "samples" / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "data" / "samples" / name).write_text("".join(lines[:options.rows and options.rows + 1]),
                                                        encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "finetune").symlink_to(options.program.resolve())
    (folder / "bank").mkdir()
    (folder / "bank" / "all-minilm-l6-v2").symlink_to(options.model.resolve())  # fetch_model.sh finds it there


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("program", type=Path)
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    found, count = [], 0
    with tempfile.TemporaryDirectory(prefix="finetune-guide-") as name:
        folder = Path(name)
        prepare(folder, options)
        environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                       "CUDA_VISIBLE_DEVICES": ""}
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            blocks = [(match, commands_of(match)) for match in BLOCK.finditer(text)]
            commands = [command for _, block in blocks for command in block]
            if options.rows:
                for command in commands:
                    command.text = re.sub(r"(--assert \"?\w+>=)0\.[0-8]\d*", r"\g<1>0", command.text)
                    command.text = command.text.replace("\n[sweep]\n", "epochs = 1\n[sweep]\n")
            run_page(commands, folder, environment)
            page_found = list(mistakes(page, commands))
            if options.write and not page_found:
                outputs = {match.start(): with_outputs(match, block) for match, block in blocks}
                page.write_text(BLOCK.sub(lambda match: outputs[match.start()], text), encoding="utf-8")
            found += page_found
            count += len(commands)
            print(f"{page.name}: {len(commands)} commands", flush=True)
    for line in found:
        print("guide: " + line)
    print(f"{count} commands of {len(PAGES)} pages, {len(found)} of them not as the guide says")
    sys.exit(1 if found or not count else 0)


if __name__ == "__main__":
    main()
