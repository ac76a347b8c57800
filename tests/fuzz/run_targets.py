#!/usr/bin/env python3
"""Runs the fuzz targets of a build for some time each, and says what was covered and what broke.

usage: run_targets.py BUILD SECONDS [--jobs N] [--report FOLDER] [TARGET...]     default: all targets, a core each

BUILD is a build with -Dfuzz=enabled; scripts/fuzz.sh makes one. Inputs that cover something new are kept in
BUILD/fuzz/corpus/TARGET and are where the next run begins; inputs that break a target are written to
BUILD/fuzz/crashes/TARGET. A target goes on behind a crash, ten at most. --report writes fuzz.csv into FOLDER, where
rows of targets that were not run stay as they are. Exit status 1 if something broke.
"""
import argparse
import concurrent.futures
import dataclasses
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "plots"))
import csv_files  # noqa: E402

MOST_CRASHES = 10
TIMEOUT, MEMORY_MB = 25, 3072

# The sources whose lines are counted: the reader of each target.
HDF5 = ["src/weights/hdf5/"]
READERS = {
    "checkpoint": [*HDF5, "src/train/checkpoint/checkpoint_contents.cpp", "src/train/checkpoint/sealed_file.cpp"],
    "command_line": ["src/cli/usage.cpp", "src/cli/parser.cpp"],
    "ngram_file": ["tasks/classification/ngram_mix/ngram_file.cpp"],
    "bpe": ["tokenizer/bpe/", "tokenizer/special_tokens.cpp", "tokenizer/added_tokens"],
    "config_json": ["src/model/config.cpp", "src/model/architectures/",
                    "tasks/classification/model_options.cpp", "tasks/qa/qa_defaults.cpp"],
    "config_toml": ["src/train/options/config_parser", "src/train/options/config_file.cpp"],
    "grid_toml": ["src/train/options/config_parser", "src/train/sweep/grid"],
    "json_rows": ["data/rows/json_rows.cpp", "data/json_cursor", "data/rows/row_stream.cpp"],
    "keras_hdf5": [*HDF5, "src/weights/tensorflow/keras_reader.cpp"],
    "metrics_json": ["src/train/run/metrics_files.cpp"],
    "pickle": ["src/weights/torch/pickle", "src/weights/torch/torch_tensors.cpp"],
    "predictions": ["tasks/scores/prediction_files.cpp", "tasks/scores/squad_metrics.cpp",
                    "tasks/scores/python_text.cpp"],
    "rows": ["data/rows/row_grammar.cpp", "data/rows/row_stream.cpp", "data/rows/row_options.cpp", "data/source/"],
    "safetensors": ["src/weights/safetensors/safetensors_reader.cpp", "src/weights/stored_tensor.cpp",
                    "src/weights/stored_weights.cpp"],
    "sentencepiece": ["tokenizer/sentencepiece/", "tokenizer/unigram/", "tokenizer/added_tokens"],
    "shard_index": ["src/weights/shard_index.cpp", "src/weights/weight_format.cpp",
                    "src/weights/safetensors/safetensors_reader.cpp"],
    "squad": ["data/squad.cpp", "data/json_cursor"],
    "tensorflow_checkpoint": ["src/weights/tensorflow/checkpoint_reader.cpp", "src/weights/tensorflow/leveldb_table.cpp",
                              "src/weights/tensorflow/protobuf.h"],
    "tokenizer_json": ["tokenizer/wordpiece/", "tokenizer/unigram/", "tokenizer/special_tokens.cpp", "tokenizer/added_tokens",
                       "tokenizer/json_file.h"],
    "torch_legacy": ["src/weights/torch/torch_reader.cpp", "src/weights/torch/pickle", "src/weights/torch/torch_tensors.cpp"],
    "torch_zip": ["src/weights/torch/torch_reader.cpp", "src/weights/torch/zip_archive.cpp", "src/weights/torch/torch_tensors.cpp"],
    "train_options": ["src/train/options/", "src/cli/usage.cpp"],
    "vocab": ["tokenizer/wordpiece/", "tokenizer/special_tokens.cpp", "tokenizer/added_tokens"],
}


@dataclasses.dataclass
class Result:
    target: str
    seconds: float = 0
    executions: int = 0
    edges: int = 0
    inputs: int = 0
    lines: tuple = None  # covered, all
    crashes: list = dataclasses.field(default_factory=list)
    fault: str = ""      # it did not run


class Runner:
    def __init__(self, build, seconds, seeds, scratch):
        self.build, self.seconds, self.seeds, self.scratch = build, seconds, seeds, scratch
        self.folder = build / "fuzz"
        suppressions = ROOT / "tests" / "sanitizers.supp"
        self.environment = {**os.environ, "TMPDIR": str(scratch), "LLVM_PROFILE_FILE": os.devnull,
                            "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:allocator_release_to_os_interval_ms=500",
                            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
                            "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0"}

    def program(self, target):
        return self.build / "tests" / "fuzz" / f"fuzz_{target}"

    def inputs(self, target):
        """Where inputs are read from, the folder that new ones go to first."""
        corpus = self.folder / "corpus" / target
        corpus.mkdir(parents=True, exist_ok=True)
        others = [self.seeds / target, HERE / "regressions" / target]
        return [corpus, *(folder for folder in others if folder.is_dir())]

    def run(self, target):
        result = Result(target)
        crashes = self.folder / "crashes" / target
        crashes.mkdir(parents=True, exist_ok=True)
        before = set(crashes.iterdir())
        log = self.folder / "logs" / f"{target}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"")
        for _ in range(MOST_CRASHES):
            left = max(1, round(self.seconds - result.seconds))
            began = time.monotonic()
            try:
                status, output = self.fuzz(target, left, crashes, log)
            except OSError as error:  # others go on
                result.fault = str(error)
                break
            result.seconds += time.monotonic() - began
            self.count(output, result)
            found = set(crashes.iterdir()) - before
            result.crashes = sorted(path for path in found if not path.name.startswith("slow-unit-"))
            if status == 0 or result.seconds >= self.seconds:
                break
            if "SUMMARY: " not in output and "ERROR: libFuzzer" not in output:
                result.fault = f"ended with status {status}: {output.strip().splitlines()[-1:]}"
                break
        result.inputs = sum(1 for _ in self.inputs(target)[0].iterdir())
        result.lines = self.covered_lines(target)
        return result

    def fuzz(self, target, seconds, crashes, log):
        dictionary = self.seeds / "dictionaries" / f"{target}.dict"
        command = [self.program(target), f"-max_total_time={seconds}", f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY_MB}",
                   f"-artifact_prefix={crashes}/", "-print_final_stats=1", "-reload=0", "-verbosity=1",
                   *([f"-dict={dictionary}"] if dictionary.exists() else []), *self.inputs(target)]
        with open(log, "r+b") as out:
            at = out.seek(0, os.SEEK_END)
            status = subprocess.run([*map(str, command)], stdout=out, stderr=out, env=self.environment).returncode
            out.seek(at)
            return status, out.read().decode(errors="replace")

    @staticmethod
    def count(output, result):
        executed = re.findall(r"stat::number_of_executed_units: (\d+)", output) or re.findall(r"^#(\d+)", output, re.MULTILINE)
        result.executions += int(executed[-1]) if executed else 0
        covered = re.findall(r" cov: (\d+) ", output)
        result.edges = max([result.edges, *map(int, covered)])

    def covered_lines(self, target):
        """By clang's own coverage, of a run over all inputs; None where llvm-cov is not installed."""
        tools = [shutil.which(f"{tool}-14") or shutil.which(tool) for tool in ("llvm-profdata", "llvm-cov")]
        if not all(tools):
            return None
        raw, profile = self.scratch / f"{target}.profraw", self.scratch / f"{target}.profdata"
        environment = {**self.environment, "LLVM_PROFILE_FILE": str(raw)}
        subprocess.run([self.program(target), "-runs=0", *self.inputs(target)], capture_output=True, env=environment)
        try:
            subprocess.run([tools[0], "merge", "-o", profile, raw], check=True, capture_output=True)
            exported = subprocess.run([tools[1], "export", "-summary-only", f"-instr-profile={profile}", self.program(target)],
                                      check=True, capture_output=True).stdout
        except subprocess.CalledProcessError:
            return None
        covered = total = 0
        for file in json.loads(exported)["data"][0]["files"]:
            path = os.path.relpath(os.path.realpath(self.build / file["filename"]), ROOT)
            if any(path.startswith(reader) for reader in READERS.get(target, [])):
                covered += file["summary"]["lines"]["covered"]
                total += file["summary"]["lines"]["count"]
        return (covered, total) if total else None


HEADER = ("target", "seconds", "executions", "edges", "reader's lines covered", "reader's lines", "inputs kept",
          "crashes", "commit")


def row(r, commit):
    """Its row of fuzz.csv."""
    return dict(zip(HEADER, (r.target, f"{r.seconds:.0f}", r.executions, r.edges, *(r.lines or ("", "")), r.inputs,
                             r.fault or len(r.crashes), commit)))


def table(rows):
    text = ["| " + " | ".join(map(str, cells)) + " |" for cells in (HEADER, *(row.values() for row in rows))]
    text.insert(1, "|---|" + "---:|" * (len(HEADER) - 1))
    return "\n".join(text)


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else os.uname().machine}, {len(os.sched_getaffinity(0))} cores"


def version(command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else "unknown"


def write_report(folder, rows, known):
    """fuzz.csv and a row in runs.csv. Targets that did not run keep their rows: a report can be made in parts."""
    if not folder.is_dir():
        sys.exit(f"run_targets: error: {folder} is not a folder; docs/reliability is the one for --report")
    merged = {row["target"]: row for row in [*csv_files.read(folder / "fuzz.csv"), *rows]}
    csv_files.write(folder / "fuzz.csv", [merged[name] for name in known if name in merged])
    compiler = version(["clang++-14", "--version"]).split(" (")[0]
    csv_files.update(folder / "runs.csv", [{
        "kind": "fuzz", "machine": f"{machine()} (load {os.getloadavg()[1]:.0f} at the end)",
        "date": datetime.date.today(),
        "summary": f"{compiler}, AddressSanitizer and UndefinedBehaviorSanitizer"}], ("kind",))


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("build", type=Path)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--report", type=Path)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_intermixed_args()
    build = options.build.resolve()
    known = sorted(path.name.removeprefix("fuzz_") for path in (build / "tests/fuzz").glob("fuzz_*") if path.is_file())
    unknown = [target for target in options.targets if target not in known]
    if unknown or not known:
        sys.exit(f"run_targets: error: no target {' '.join(unknown)} in {build}; there are: {' '.join(known)}")
    targets = options.targets or known
    commit = version(["git", "rev-parse", "--short", "HEAD"])
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files of an input are written and read at once
    with tempfile.TemporaryDirectory(prefix="fuzz-targets-", dir=memory) as scratch:
        seeds = build / "fuzz" / "seeds"
        shutil.rmtree(seeds, ignore_errors=True)
        subprocess.run([sys.executable, HERE / "make_seeds.py", seeds, build / "tests/fuzz/hdf5_seeds"], check=True,
                       env={**os.environ, "LLVM_PROFILE_FILE": os.devnull, "ASAN_OPTIONS": "detect_leaks=0"})
        runner = Runner(build, options.seconds, seeds, Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            running = [pool.submit(runner.run, target) for target in targets]
            results, rows = [], []
            for done in running:
                results.append(done.result())
                last = results[-1]
                rows.append(row(last, commit))
                print(f"{last.target}: {last.executions} executions, {len(last.crashes)} crashes {last.fault}", flush=True)
                if options.report:  # after each: a run that is ended early keeps what it has
                    write_report(options.report, rows, known)
    print("\n" + table(rows))
    crashes = [path for result in results for path in result.crashes]
    for path in crashes:
        print(f"crash: {os.path.relpath(path)}")
    faults = sum(1 for result in results if result.fault)
    print(f"{len(results)} targets, {len(crashes) + faults} crashes")
    return 1 if crashes or faults else 0


if __name__ == "__main__":
    sys.exit(main())
