"""Sections of a document between marks, so that one part can be measured again alone."""
import os
import tempfile
from pathlib import Path

FIRST = ("<!-- compare_hf.sh writes from here -->", "<!-- to here -->")  # of the training part


def marks(part):
    if part == "training":
        return FIRST
    script = "compare_gpu.sh" if part == "gpu" else "compare_hf.sh"
    return f"<!-- {script} writes {part} from here -->", f"<!-- {part} to here -->"


def is_document(path):
    """Not a pipe or terminal, nor /dev/stdout where that is a file."""
    return path.is_file() and path.parent != Path("/dev") or not path.exists()


def write(path, part, text):
    """Replaces the part's section of a document, or appends it with its marks; a stream gets the text."""
    if not is_document(path):
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(text + "\n")
        return
    begin, end = marks(part)
    section = f"{begin}\n{text}{end}"
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    if begin in old and end in old[old.index(begin):]:
        first = old.index(begin)
        new = old[:first] + section + old[old.index(end, first) + len(end):]
    else:
        new = (old.rstrip("\n") + "\n\n" if old else "") + section + "\n"
    replace(path, new)


def replace(path, text):
    """The old document stays whole until the new one is."""
    path = Path(os.path.realpath(path))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.",
                                     delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, path.stat().st_mode & 0o777 if path.exists() else 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
