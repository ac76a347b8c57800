#!/usr/bin/env python3
"""Runs the missing cells of the quality table, and writes docs/quality/results.csv from all.

Run it through quality.sh, which finds the peer's Python. A cell is one system trained on one set of
data with one seed. A result is valid for the settings that it was made with: if they change, the cell runs again.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from quality import document, results  # noqa: E402
from quality.data import SETS  # noqa: E402
from quality.runs import Machine, Run  # noqa: E402
from quality.systems import SYSTEMS  # noqa: E402

PROJECT = Path(__file__).resolve().parents[2]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a pretrained BERT, e.g. what scripts/fetch_model.sh prints")
    parser.add_argument("--binary", default=PROJECT / "build" / "finetune", type=Path)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--shared", default=Path(os.environ.get("FINETUNE_SHARED", PROJECT.parent / "shared")), type=Path)
    parser.add_argument("--scratch", type=Path, help="keeps models between calls")
    parser.add_argument("--final", action="store_true", help="predict the test rows, where there are some, with the kept models")
    parser.add_argument("--data", default=",".join(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help=f"of {', '.join(SYSTEMS)}")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--again", action="store_true", help="run cells that are there, too")
    parser.add_argument("--minutes", type=float, help="begin no cell after so many")
    parser.add_argument("--results", default=Path(__file__).resolve().parent / "quality" / "results.jsonl", type=Path)
    parser.add_argument("--output", default=PROJECT / "docs" / "quality" / "results.csv", type=Path)
    parser.add_argument("--list", action="store_true", help="print the missing cells and stop")
    parser.add_argument("--document", action="store_true", help="write the CSV file and stop")
    return parser.parse_args()


def chosen(option, text, known):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            sys.exit(f"quality: error: {option} {name}: known are {', '.join(known)}")
    return names


def missing_cells(options):
    """The cells by data set, shortest first, then by system."""
    known = results.read(options.results)
    for seed in map(int, options.seeds.split(",")):
        for data in chosen("--data", options.data, SETS):
            for name in chosen("--systems", options.systems, SYSTEMS):
                system = SYSTEMS[name]
                if not system.takes(SETS[data]) or (system.seedless and seed != 1) or system.comes_with:
                    continue
                settings = system.settings(SETS[data])
                if options.final and not SETS[data].test:
                    continue
                if options.final and not system.seedless and not is_kept(options, data, name, seed, settings):
                    if results.has(known, data, name, seed, False, settings):
                        print(f"quality: no model of {data} {name} seed {seed} is kept; --again makes one", file=sys.stderr)
                    continue
                if options.again or not results.has(known, data, name, seed, options.final, settings):
                    yield data, name, seed


def is_kept(options, data, name, seed, settings):
    kept = Machine(options, options.scratch).kept_model(SETS[data], SYSTEMS[name], seed) / "settings"
    return kept.exists() and kept.read_text(encoding="utf-8") == settings


def main():
    options = parse_arguments()
    if options.final and not options.scratch and not options.document:
        sys.exit("quality: error: --final needs --scratch, where runs on development rows have kept their models")
    cells = [] if options.document else list(missing_cells(options))
    if options.list:
        print("\n".join(f"{data} {system} seed {seed}" for data, system, seed in cells))
        return
    if cells and not options.model and not options.final:
        sys.exit("quality: error: --model is required to run cells")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        machine = Machine(options, options.scratch or Path(temporary))
        for number, (data, name, seed) in enumerate(cells):
            if options.minutes and time.monotonic() - began > 60 * options.minutes:
                print(f"quality: {len(cells) - number} cells are left", file=sys.stderr)
                break
            directory = Path(temporary) / f"cell-{number}"
            run = Run(machine, SETS[data], seed, directory)
            cell, others = run.on_test_rows(SYSTEMS[name]) if options.final else run.of(SYSTEMS[name])
            shutil.rmtree(directory)
            for system, result in {name: cell, **others}.items():
                results.add(options.results, data, system, seed, options.final, result)
            shown = ", ".join(f"{key} {cell[key]:.4g}" for key in (*SETS[data].metrics, "processor_seconds"))
            print(f"{number + 1}/{len(cells)} {data} {name} seed {seed}: {shown}", file=sys.stderr, flush=True)
    document.write(options.output, results.read(options.results))


main()
