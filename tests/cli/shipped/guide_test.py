"""docs/guide: all commands of its pages run, on a part of the samples with a tiny model."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import QA_MODEL
from harness import BINARY, PATIENCE, main, need

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "scripts" / "guide.py"


def guide(*arguments, script=GUIDE):
    return subprocess.run([sys.executable, script, *arguments, BINARY, QA_MODEL], capture_output=True, text=True,
                          timeout=3 * PATIENCE, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


def test_every_command(directory):
    need("golden/tiny-bert-qa")  # its head is of another task, so each run creates a new one
    done = guide("--rows", "700")
    assert done.returncode == 0, done.stdout + done.stderr
    count = re.search(r"^(\d+) commands of (\d+) pages, 0 of", done.stdout, re.M)
    shown = sum(page.read_text().count("\n$ ") for page in (ROOT / "docs" / "guide").glob("[1-9]-*.md"))
    assert int(count[2]) == 4 and int(count[1]) >= shown > 35, (done.stdout, shown)


def test_every_screen(directory):
    """The page of screens is made anew, and has the commands of the page in the guide."""
    need("golden/tiny-bert-qa")
    page = directory / "screens.md"
    script = ROOT / "scripts" / "generate" / "screens.py"
    done = subprocess.run([sys.executable, script, "--rows", "150", "--output", page, BINARY, QA_MODEL], capture_output=True,
                          text=True, timeout=3 * PATIENCE, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    made, kept = page.read_text(), (ROOT / "docs" / "guide" / "screens.md").read_text()
    assert re.findall(r"^(?:##|\$ ).*", made, re.M) == re.findall(r"^(?:##|\$ ).*", kept, re.M)
    for text in (made, kept):
        for screen in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
            rows = screen.splitlines()
            assert 1 < len(rows) < 40 and max(map(len, rows)) <= 80, screen
        for name in ("/tmp/", str(Path.home()) + "/", os.uname().nodename + "\n"):
            assert name not in text, (name, text)


def test_it_can_fail(directory):
    """Pages with a failing command, a wrong exit code, or output that is not printed."""
    need("golden/tiny-bert-qa")
    for folder in ("scripts", "docs/guide"):
        (directory / folder).mkdir(parents=True)
    (directory / "scripts" / "guide.py").write_text(GUIDE.read_text())
    (directory / "data").symlink_to(ROOT / "data")
    page = directory / "docs" / "guide" / "1-page.md"
    for text, found in (("```console\n$ finetune --version\n0.1.0\n```\n", 0), ("```sh\nfalse\n```\n", 1),
                        ("```console\n$ finetune trian\n```\n", 1), ("```console\n$ true\nsome words\n```\n", 1),
                        ('```console\n$ finetune trian; echo "exit code $?"\nexit code 3\n```\n', 1),
                        ('```console\n$ finetune trian; echo "exit code $?"\nexit code 2\n```\n', 0),
                        ("```console\n$ exit 3\n$ true\n```\n", 1), ("no command\n", 1)):
        page.write_text(text)
        done = guide(script=directory / "scripts" / "guide.py")
        assert done.returncode == found, (text, done)
    page.write_text("<!-- show: 1 ... 1 -->\n```console\n$ seq 5\nx\n$ printf '%s\\n' one |\n"
                    "      cat\nx\n```\nwords\n")
    assert guide("--write", script=directory / "scripts" / "guide.py").returncode == 0
    assert page.read_text() == ("<!-- show: 1 ... 1 -->\n```console\n$ seq 5\n1\n...\n5\n$ printf '%s\\n' one |\n"
                                "      cat\none\n```\nwords\n"), page.read_text()


def test_outputs_are_for_a_reader(_):
    """A table keeps its columns when the folder's name goes; progress by the clock is left out."""
    sys.path.insert(0, str(GUIDE.parent))
    from guide import without_folder
    told = ("run 1/2  model=a  step 3/9\n1/2  done\n"
            "   model            lr    difference\n*  /tmp/g/bank/long  0.1\n   /tmp/g/bank/b     0.02  -0.5, noise\n\n"
            "best: model /tmp/g/bank/long\n")
    assert without_folder(told, Path("/tmp/g")) == (
        "1/2  done\n   model  lr    difference\n*  long   0.1\n   b      0.02  -0.5, noise\n\nbest: model long\n")
    assert without_folder("plain  text\n\n", Path("/tmp/g")) == "plain  text\n\n"


main(globals())
