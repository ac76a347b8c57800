"""Pictures and tables of the documents are what the CSV files beside them give."""
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import main

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "scripts" / "bench"))
from compare import document, tables

SVG = "{http://www.w3.org/2000/svg}"
WIDTH = {"title": 8.6, "bold": 7.8, "small": 6.4, "": 7.2}  # of a character of each style, in pixels, a wide font's


def draw(root, *arguments):
    return subprocess.run([sys.executable, root / "scripts/plots/draw.py", *arguments], capture_output=True, text=True)


def copy_of_the_documents(directory):
    root = directory / "copy"
    for folder in ("docs", "scripts/plots"):
        shutil.copytree(ROOT / folder, root / folder)
    for name in ("src", "tokenizer", "tasks", "data", "meson.build"):
        (root / name).symlink_to(ROOT / name)
    return root


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path} has no {old}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_all_is_up_to_date(_):
    done = draw(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_figure_is_noticed_until_it_is_drawn(directory):
    root = copy_of_the_documents(directory)
    replace(root / "docs/benchmarks/training.csv", "284.83,287.22,302.41", "284.83,291.22,302.41")
    done = draw(root, "--check")
    assert done.returncode == 1 and re.findall(r"^(\S+) is not", done.stdout, re.M) == \
        ["docs/plots/speed.svg", "docs/benchmarks.md"], done.stdout
    assert draw(root).returncode == 0 and draw(root, "--check").returncode == 0
    assert "| 291.22 |" in (root / "docs/benchmarks.md").read_text(encoding="utf-8")


def test_another_machine_has_its_rows(directory):
    root = copy_of_the_documents(directory)
    with open(root / "docs/benchmarks/startup.csv", "a", encoding="utf-8") as file:
        file.writelines(f'mine,startup,2026-11-28,"MiniLM-L6, bank text",{side},1,{seconds},3,\n'
                        for side, seconds in (("finetune fp32", "0.25"), ("HF fp32", "4.5")))
    done = draw(root)
    assert done.returncode == 0, done.stderr
    assert "| MiniLM-L6, bank text | mine | 0.25 | 4.5 |" in (root / "docs/benchmarks.md").read_text(encoding="utf-8")


def test_what_is_changed_by_hand_is_noticed(directory):
    root = copy_of_the_documents(directory)
    replace(root / "docs/quality.md", "| 85.8 ± 0.3 |", "| 99.3 ± 0.3 |")
    replace(root / "docs/plots/layers.svg", "errors, text", "error, text")
    shutil.copy(root / "docs/plots/speed.svg", root / "docs/plots/old.svg")
    done = draw(root, "--check")
    assert done.returncode == 1 and [line.split()[0] for line in done.stdout.splitlines()] == \
        ["docs/quality.md", "docs/plots/layers.svg", "docs/plots/old.svg"], done.stdout


def test_a_page_without_a_table_is_an_error(directory):
    root = copy_of_the_documents(directory)
    replace(root / "docs/reliability.md", "<!-- table: soak -->", "")
    done = draw(root)
    assert done.returncode == 1 and "docs/reliability.md has places for" in done.stderr, done.stderr


def test_pictures_are_legible(_):
    pictures = sorted((ROOT / "docs/plots").glob("*.svg"))
    assert len(pictures) >= 10
    for path in pictures:
        picture = ElementTree.parse(path).getroot()
        light, dark = picture.find(f"{SVG}style").text.split("@media (prefers-color-scheme:dark)")
        colours = re.findall(r"\.f-(\w+)", light)
        assert colours == re.findall(r"\.f-(\w+)", dark) and picture.find(f"{SVG}title").text, path
        used = {
            name
            for element in picture.iter()
            for name in element.get("class", "").split() if name.startswith(("f-", "s-"))
        }
        assert {name[2:] for name in used} <= set(colours), f"{path}: {used} of {colours}"
        for text in picture.iter(f"{SVG}text"):
            style = next((name for name in WIDTH if name and name in text.get("class").split()), "")
            length = WIDTH[style] * len(text.text)
            begin = float(text.get("x")) - length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
            assert 0 <= begin and begin + length <= float(
                picture.get("width")), f"{path.name}: '{text.text}' leaves the picture"


def test_measured_tables_become_rows(directory):
    lines = [
        "| work | side | samples/s (min / median / max) | real tokens/s (median) | peak memory | goal |",
        "|---|---|---|---|---|---|",
        "| base, batch 32 | `ours` | 1,284.83 / 1,287.22 / 1,302.41 | 3,781 | 457 MiB | ≥ 1.65 |"
    ]
    row = {"work": "base, batch 32", "side": "ours", "samples/s min": "1284.83", "samples/s median": "1287.22",
           "samples/s max": "1302.41", "real tokens/s median": "3781", "peak memory, MiB": "457", "goal": "≥ 1.65"}
    assert tables.columns(lines) == (list(row), [row])
    for speed in ("1 / 2 / 3", "2 / 3 / 4"):  # measured again: the rows are replaced, others' stay
        for machine in ("mine", "yours"):
            section = document.Section("Training", {"date": "2026-11-27"}, ["how"], {"training": [
                "| work | samples/s (min / median / max) |", "|---|---|", f"| a | {speed} |"]})
            document.write(directory, machine, "training", section)
    assert (directory / "training.csv").read_text() == (
        "machine,part,date,work,samples/s min,samples/s median,samples/s max\n"
        "mine,training,2026-11-27,a,2,3,4\nyours,training,2026-11-27,a,2,3,4\n")
    assert (directory / "runs.csv").read_text() == \
        "machine,part,date,method\nmine,training,2026-11-27,how\nyours,training,2026-11-27,how\n"


main(globals())
