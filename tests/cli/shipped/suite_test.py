"""The suite's scripts: how cases are counted, which ones run again, and what CI builds."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, PROJECT, Skip, main, some_of  # noqa: E402

PASSING = "import sys\nprint('ran', sys.argv[1:])\nprint('test cases: 1 | 1 passed | 0 failed')\n"


def log_of(path, *programs):
    path.write_text("".join(json.dumps({"name": name, "result": result, "stdout": out, **more}) + "\n"
                            for name, result, out, more in programs))
    return path


def counted(*arguments):
    done = subprocess.run([sys.executable, PROJECT / "tests/count_tests.py", *map(str, arguments)],
                          capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()[-1], done.stdout


def test_counts(directory):
    summary = "test cases: 9 | 9 passed | 0 failed\n"
    log = log_of(directory / "log.json", ("a", "OK", summary + "SKIPPED: x: y is absent\n", {}),
                 ("b", "OK", "test cases: 3 | 2 passed | 1 failed\n", {}), ("c", "FAIL", "no summary\n", {}))
    assert counted(log)[:2] == (1, "10 passed, 2 failed, 1 skipped")
    assert counted(directory / "absent.json")[:2] == (1, "0 passed, 0 failed, 0 skipped"), "nothing ran"


def test_what_lacked_data_runs_again(directory):
    """With the folder, only that case runs again, and it replaces its skip in the count."""
    lacking, shared = directory / "lacking", directory / "shared"
    shared.mkdir()
    program = directory / "program_test.py"
    program.write_text("import os, sys\nassert os.environ['FINETUNE_SHARED'].endswith('shared')\n" + PASSING)
    out = (f"SKIPPED: test_large: {lacking}/data/x.csv is absent\nSKIPPED: test_gpu: there is no GPU\n"
           "test cases: 40 | 40 passed | 0 failed\n")
    log = log_of(directory / "log.json",
                 ("a", "OK", out, {"command": [sys.executable, str(program)], "env": {}}),
                 ("b", "OK", "test cases: 1 | 1 passed | 0 failed\n", {"command": ["false"], "env": {}}))
    again = directory / "again.json"
    subprocess.run([sys.executable, PROJECT / "tests/test_again.py", log, lacking, shared, again], check=True,
                   capture_output=True)
    ran = [json.loads(line) for line in again.read_text().splitlines()]
    assert len(ran) == 1 and "ran ['test_large']" in ran[0]["stdout"] and ran[0]["result"] == "OK", ran
    code, last, text = counted("--lacking", lacking, log, "--again", again)
    assert (code, last) == (0, "40 passed, 0 failed, 1 skipped"), text
    assert "without large data: 39 passed, 0 failed, 2 skipped, 1 of them for lack of it" in text, text


def test_a_clone_that_cannot_test_itself_fails(directory):
    out = f"SKIPPED: test_a: {directory}/x is absent\nSKIPPED: test_b: {directory}/y is absent\n"
    for cases, failed in ((39, 1), (40, 0)):
        log = log_of(directory / "log.json", ("a", "OK", f"{out}test cases: {cases} | {cases} passed | 0 failed\n", {}))
        code, last, text = counted("--lacking", directory, log)
        assert (code, last) == (failed, f"{cases - 2} passed, {failed} failed, 2 skipped"), text


def test_doctest_runs_the_named_cases_alone(_):
    sys.path.insert(0, str(PROJECT / "tests"))
    from test_again import only
    assert only(["prog"], ['a, "b" [c]', "d"]) == ["prog", "--test-case=a? ?b? ?c?,d"]


def test_ci_types_what_the_readme_says(_):
    """README's commands, verbatim except for the folder, and for code for one GPU in place of six."""
    readme = (PROJECT / "README.md").read_text()
    assert "`scripts/install_deps.sh && meson setup build && meson compile -C build`" in readme
    commands = [line.split("#")[0].strip() for line in (PROJECT / "scripts/test.sh").read_text().splitlines()]
    assert "scripts/install_deps.sh" in commands and "scripts/configure.sh $build -Dgpu_architectures=80" in commands, commands
    assert "gpu_architectures" not in (PROJECT / ".github/workflows/ci.yml").read_text() + (PROJECT / "scripts/nightly.sh").read_text()
    assert any(line.startswith("meson compile -C $build ||") for line in commands), commands
    assert 'meson setup "$directory" "$@"' in (PROJECT / "scripts/configure.sh").read_text()
    assert 'exec bash "$(dirname "$0")/../scripts/test.sh"' in (PROJECT / ".ci/run").read_text()


def test_a_change_selects_its_tests(_):
    sys.path.insert(0, str(PROJECT / "tests"))
    from select_tests import chosen, patterns_for
    tests = [{"name": name, "cmd": ["python3", str(PROJECT / script)], "suite": [suite]} for name, script, suite in (
        ("unit-data", "x", "finetune:fast"), ("unit-ops-table", "x", "finetune:unit"), ("mpi-train", "x", "finetune:mpi"),
        ("cli-pipe", "tests/cli/pipe_test.py", "finetune:cli"), ("cli-hub", "tests/cli/experiments/hub_test.py", "finetune:cli"))]
    for path, expected in (("docs/README.md", []), ("src/ops/cpu/cpu.cpp", ["unit-ops-table"]), ("tests/unit/ops/x.cpp", ["unit-ops-table"]),
                           ("src/comm/solo.cpp", ["mpi-train"]), ("tests/cli/pipe_test.py", ["cli-pipe"]), ("src/train/trainer.cpp", ["mpi-train", "cli-hub"]),
                           ("meson.build", ["unit-ops-table", "mpi-train", "cli-pipe", "cli-hub"])):
        names = [test["name"] for test in chosen(tests, PROJECT, patterns_for(path))]
        assert sorted(names) == sorted(["unit-data", *expected]), (path, names)


def test_every_folder_of_sources_has_tests(_):
    """A pattern of select_tests.py that fits no test would let a change through."""
    build = Path(BINARY).resolve().parent
    if not (build / "build.ninja").exists() or not shutil.which("meson"):
        raise Skip("the program is not in a build folder")
    sys.path.insert(0, str(PROJECT / "tests"))
    from select_tests import NEEDS, chosen, introspected
    tests = [{**test, "suite": []} for test in introspected(build, "--tests")]
    for files, patterns in NEEDS:
        for pattern in patterns.split():
            assert "{" in pattern or list(chosen(tests, PROJECT, [pattern])), (files, pattern)


def test_messages_of_commits(directory):
    script = PROJECT / "scripts/check_message.py"
    for message, words in (("Read DistilBERT's configuration\n\nBecause.\n", None), ("", "empty"), ("x" * 73, "73 characters"),
                           ("Mend it\n\nSee /home/somebody/build/log.txt.\n", "/home/somebody"), ("Use build/finetune, src/core and ../shared\n", None)):
        (directory / "message").write_text(message)
        done = subprocess.run([sys.executable, script, directory / "message"], capture_output=True, text=True)
        assert (done.returncode, bool(done.stdout)) == (int(words is not None), words is not None), (message, done)
        assert not words or words in done.stdout, done


def test_versions_agree(_):
    version = re.search(r"version: '([^']+)'", (PROJECT / "meson.build").read_text())[1]
    assert f"\nversion: {version}\n" in (PROJECT / "CITATION.cff").read_text()


def commands_of(build):
    """For each object of a build folder: source, the compiler's arguments, command.

    The arguments are without the folder's name and without what names a place: definitions and systems' headers.
    """
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words, arguments = iter(shlex.split(entry["command"])), []
        for word in words:
            if word in ("-o", "-MF", "-MQ", "-isystem"):
                next(words)
            elif word.startswith("-I") and (build / word[2:]).resolve().is_relative_to(PROJECT):
                arguments.append("-I" + os.path.relpath(build / word[2:], build))
            elif word.startswith(("-std", "-O", "-W", "-f", "-m", "-U")):
                arguments.append(word)
        source = (build / entry["file"]).resolve()
        if source.is_relative_to(build):  # generated there
            source = source.relative_to(build)
        found[entry["output"]] = source, " ".join(arguments), entry["command"]
    return found


def options_in(script, pattern):
    return re.search(pattern, (PROJECT / script).read_text())[1].split()


def test_quickstart_and_packages_compile_what_ci_compiles(directory):
    """Their options affect only a few files, which are compiled here."""
    build = Path(BINARY).resolve().parent
    if not (build / "compile_commands.json").exists() or not shutil.which("meson"):
        raise Skip("the program is not in a build folder")
    # Beside the other build folder, as in the scripts, so that source paths are equal.
    quickstart = options_in("scripts/quickstart.sh", r'configure.sh "\$build" (-D.*)')
    package = options_in("scripts/package/build_packages.sh", r"\noptions=\((.*)\)")
    ours = {(source, arguments) for source, arguments, _ in commands_of(build).values()}
    for options in some_of(2, quickstart, [*package, "-Dprefer_static=true", "-Dmpi=disabled"],
                           [*package, "-Dprefer_static=true", "-Dmpi=enabled"], [*package, "-Dprefer_static=false"]):
        other = Path(tempfile.mkdtemp(prefix="build-as-", dir=build.parent))
        try:
            subprocess.run(["meson", "setup", other, PROJECT, *options], check=True, capture_output=True)
            more = [(source, command) for source, arguments, command in commands_of(other).values()
                    if (source, arguments) not in ours]
            assert len(more) <= 5, (f"{options}: compiled in another way than in {build}, if that is up to date: "
                                    f"{[str(source) for source, _ in more[:9]]}")
            for source, command in more:
                done = subprocess.run(f"{command} -I{PROJECT}/src/core/pch -O0 -fsyntax-only", shell=True, cwd=other, capture_output=True, text=True)
                assert done.returncode == 0, f"{options}: {source}: {done.stderr}"
            print(f"{' '.join(options)}: {len(more)} more")
        finally:
            shutil.rmtree(other)


main(globals())
