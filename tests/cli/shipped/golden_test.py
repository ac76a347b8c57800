"""The test data in the repository: complete, described, and small."""
import hashlib
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import GOLDEN, PROJECT, SAMPLES, Skip, main  # noqa: E402

FOLDER = PROJECT / "tests/golden"
DESCRIBED = ("README.md", "SHA256SUMS")
MOST_BYTES = 31_000_000


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_every_file_has_its_sum(_):
    lines = (FOLDER / "SHA256SUMS").read_text().splitlines()
    wanted = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = {str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
             for path in files_of(FOLDER) if path.name not in DESCRIBED}
    assert found == wanted, {name for name in {*found, *wanted} if found.get(name) != wanted.get(name)}


def test_all_together_are_small(_):
    size = sum(path.stat().st_size for folder in (FOLDER, SAMPLES) for path in files_of(folder))
    assert size <= MOST_BYTES, size


def test_the_readme_names_each_file(_):
    """Described by its own name, its folder's, or a pattern."""
    text = (FOLDER / "README.md").read_text()
    for path in files_of(FOLDER):
        name = path.relative_to(FOLDER)
        names = {path.name, str(name.parent), name.parent.name, f"{name.parent}/NAME.jsonl", f"{name.parts[0]}/*"}
        assert path.name in DESCRIBED or any(f"`{known}`" in text for known in names), f"{name} is not described"
    samples = (SAMPLES / "README.md").read_text()
    for path in files_of(SAMPLES):
        assert path.name == "README.md" or path.name in samples, f"{path.name} is not described"


def test_models_are_made(directory):
    """The build has made the formats and broken models; running the script again gives the same."""
    made = GOLDEN / "formats"
    if not (made.parent.parent / "models.stamp").exists():
        raise Skip("the program is not in a build folder that has tests")
    script = PROJECT / "scripts/generate/make_models.py"
    subprocess.run([sys.executable, script, directory], check=True)
    for folder in ("formats", "broken"):
        again = {path.relative_to(directory): path.read_bytes() for path in files_of(directory / folder)}
        there = {path.relative_to(made.parent): path.read_bytes() for path in files_of(made.parent / folder)}
        assert again == there, f"{folder}: {set(again) ^ set(there) or 'a file differs'}"


main(globals())
