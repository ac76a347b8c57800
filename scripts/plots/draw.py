#!/usr/bin/env python3
"""Draws docs/plots/*.svg from the CSV files in docs, and fills the tables of the pages.

usage: draw.py [--check]      --check writes nothing; exit status 1 if a picture or a page is not up to date
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import architecture_page  # noqa: E402
import benchmarks_page  # noqa: E402
import quality_page  # noqa: E402
import reliability_page  # noqa: E402
from pages import filled  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {
    "benchmarks": benchmarks_page, "quality": quality_page, "reliability": reliability_page,
    "architecture": architecture_page
}


def made():
    """Returns the text of every picture and page by its path."""
    for name, page in PAGES.items():
        pictures, tables = page.made(DOCS)
        yield from ((DOCS / "plots" / f"{picture}.svg", str(drawn)) for picture, drawn in pictures.items())
        path = DOCS / f"{name}.md"
        yield path, filled(path.read_text(encoding="utf-8"), tables, path.relative_to(ROOT))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    texts = dict(made())
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    unknown = [path for path in sorted((DOCS / "plots").glob("*.svg")) if path not in texts]
    if not options.check:
        (DOCS / "plots").mkdir(exist_ok=True)
        for path in stale:
            path.write_text(texts[path], encoding="utf-8")
        for path in unknown:
            path.unlink()
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what the CSV files give: run scripts/plots/draw.py")
    for path in unknown:
        print(f"{path.relative_to(ROOT)} is a picture that nothing draws: remove it")
    return 1 if stale or unknown else 0


sys.exit(main())
