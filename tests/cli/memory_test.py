"""Memory of evaluate and predict, which does not grow with the data; too small stacks."""
import os
import resource
import shutil
import subprocess

from fixtures import MODEL, MODELS, QA_MODEL, predict, rows_of, squad, write
from harness import BINARY, PATIENCE, Skip, main, need


def peak_memory(arguments, directory):
    """Peak resident memory in MiB."""
    script = ("import resource, subprocess, sys; c = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode; "
              "print(c, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)")
    done = subprocess.run(["python3", "-c", script, BINARY, *map(str, arguments)], capture_output=True, text=True)
    code, memory = done.stdout.split()
    assert code == "0", done
    return int(memory)


def test_memory_of_predict_does_not_grow(directory):
    need(*MODELS)
    peaks = []
    for count in (5000, 200000):
        data = write(directory / "big.csv", "text,n\n" + "".join(f"words {i} here,{i}\n" for i in range(count)))
        out = directory / f"out-{count}.csv"
        peaks.append(peak_memory(["predict", "--model", MODEL, "--input", data, "--output", out, "--max-length", 8],
                                 directory))
        assert sum(1 for _ in open(out)) == count + 1
    # Keeping the rows would need 440 bytes each: 80 MiB. Memory of threads varies by 10 MiB.
    assert peaks[1] < peaks[0] + 24, peaks


def test_memory_of_evaluate_does_not_grow(directory):
    need(*MODELS)
    peaks = []
    label = rows_of(predict("-", stdin="hello").out)[1][1]
    for count in (5000, 200000):
        data = write(directory / "big.csv", "text,label,n\n" +
                     "".join(f'words {i} here,"{label}",{i}\n' for i in range(count)))
        out = directory / f"out-{count}"
        peaks.append(peak_memory(["evaluate", "--model", MODEL, "--data", data, "--output", out, "--max-length", 8],
                                 directory))
        assert sum(1 for _ in open(out / "predictions.csv")) == count + 1
    assert peaks[1] < peaks[0] + 24, peaks
    # Questions are kept, with their and their context's texts; windows, logits and n-best lists, which would need 28
    # MiB here, are not.
    peaks = []
    context = "The cat sat on the mat . " * 30
    for count in (500, 4500):
        data = write(directory / "big.json", squad([(f"{i}", f"Who is {i}?", context, "The cat") for i in range(count)]))
        peaks.append(peak_memory(["evaluate", "--model", QA_MODEL, "--data", data, "--max-length", 32, "--doc-stride",
                                  8, "--output", directory / f"qa-{count}"], directory))
    assert peaks[1] < peaks[0] + 18, peaks


def test_stacks_of_little_size(directory):
    need(*MODELS)
    texts = write(directory / "texts.txt", "some words\n")
    for kib, code in ((8192, 0), (256, 0), (255, 5), (64, 5)):
        def limited(size=kib * 1024):
            resource.setrlimit(resource.RLIMIT_STACK, (size, size))

        done = subprocess.run([BINARY, "predict", "--model", MODEL, "--input", texts, "--output", "-"], capture_output=True,
                              text=True, preexec_fn=limited, timeout=PATIENCE)
        assert done.returncode == code, (kib, done)
        assert code == 0 or done.stderr.count("\n") == 1 and "stack" in done.stderr, done

    def tiny():
        resource.setrlimit(resource.RLIMIT_STACK, (16 * 1024, 16 * 1024))

    # The environment is on the stack too, and the loader needs some of it before the program starts.
    done = subprocess.run([BINARY, "--version"], capture_output=True, text=True, preexec_fn=tiny, timeout=100, env={})
    assert done.returncode == 5 and done.stderr.count("\n") == 1 and "stack" in done.stderr, done


def test_memory_of_reading(directory):
    """If memory runs out while data are read, smaller micro-batches do not help, so they are not suggested."""
    need(*MODELS)
    data = write(directory / "big.csv", "text,label\n" + "".join(f"PETROL STATION {i} IN A TOWN,{i % 2}\n"
                                                               for i in range(1000000)))

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))

    for command in (["train", "--output", directory / "run"], ["plan", "--no-time"]):
        done = subprocess.run([BINARY, *command, "--model", MODEL, "--reinit-head", "--train", data, "--max-steps", "1",
                               "--threads", "1"], capture_output=True, text=True, preexec_fn=limited)
        assert done.returncode == 5 and done.stderr.count("\n") == 1 and "micro-batch" not in done.stderr, done
        assert "out of memory while the data are read; files with fewer rows" in done.stderr, done


def test_limits_of_processes(directory):
    """Failing to start a process or thread is not reported as a lack of memory."""
    need(*MODELS)
    directory.chmod(0o777)
    rows = write(directory / "rows.csv", "text,label\n" + "".join(f"PETROL {i},fuel\nRENT {i},rent\n" for i in range(40)))
    model = shutil.copytree(MODEL, directory / "model")
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else None
    if other is None or subprocess.run([BINARY, "--version"], capture_output=True, **other).returncode:
        raise Skip("no other user can run the program here")

    def told(limit):
        done = subprocess.run([BINARY, "train", "--model", model, "--reinit-head", "--train", rows, "--eval-fraction", "0.25",
                               "--max-steps", "1", "--threads", "1", "--output", directory / f"run-{limit}"],
                              capture_output=True, text=True, **other, env={**os.environ, "TMPDIR": str(directory)},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)))
        assert done.returncode in (0, 5) and "memory" not in done.stderr, done
        return done

    results = [told(limit) for limit in range(1, 7)]
    assert results[0].returncode == 5 and results[-1].returncode == 0, results
    assert "a thread cannot be started" in results[0].stderr and "ulimit -u" in results[0].stderr, results[0]
    assert any("on n-grams failed: its process" in done.stderr and "ulimit -u" in done.stderr for done in results), results


main(globals())
