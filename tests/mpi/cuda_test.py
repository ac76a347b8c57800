"""Several processes that share a device, on a CUDA module whose kernels run on the host.

They have the bits of one process, in training, evaluation, prediction and after a resumption.

With FINETUNE_DEVICE=cuda and without that module the processes share a GPU (scripts/gpu/gpu_check.sh)."""
import shutil
from pathlib import Path

from ranks import Job, cut_back, metrics_of, need_mpirun, one_error, results_of, same_results, succeed_on
import harness
from harness import main, need, nightly, some_of, succeed
from cuda_jobs import ANSWERS, EVAL, LABELS, MODEL, NAMES, a_killed_process_ends_the_job, prepared, same_on
from cuda_on_host import CPU_BINARY

SHARE = ((2, 1), (4, 1))  # processes of one host, which share a device


def test_classification(directory):
    prepared()
    line = [*LABELS, "--quiet"]
    same_on(directory, line, *some_of(3, (2, 1), (5, 1, "--recompute"), (3, 2), (4, 1)))


def test_questions(directory):
    prepared()
    same_on(directory, ANSWERS, *some_of(1, (3, 2), *SHARE))


def test_frozen_layers(directory):
    """The word embedding is frozen."""
    prepared()
    same_on(directory, [*LABELS, "--quiet", "--freeze", 1, "--class-weights", "balanced"], (3, 1), (2, 2))


def test_bf16_and_other_shards(directory):
    """K is not a power of two; auto means bf16."""
    prepared()
    same_on(directory, [*LABELS, "--quiet", "--precision", "auto", "--virtual-shards", 3], (2, 1))


@nightly
def test_prediction_in_stages(directory):
    """Hidden states go between devices through host memory."""
    prepared()
    rows = directory / "rows.csv"
    rows.write_text("".join(EVAL.read_text().splitlines(keepends=True)[:30]))
    line = ["predict", "--model", MODEL, "--input", rows, "--label-column", "category", "--all-probabilities",
            "--output", "-", "--batch-size", 4, "--device", "cuda"]
    for precision in ("fp32", "bf16"):
        expected = succeed(*line, "--precision", precision).out
        for processes, hosts in ((2, 1), (4, 2)):
            result = succeed_on(processes, *line, "--precision", precision, "--pp", 2, hosts=hosts)
            assert result.out == expected and expected, (precision, processes)


@nightly
def test_the_best_model_is_exported(directory):
    """Weights that rank 0 reads again at the end reach all devices."""
    prepared()
    one = same_on(directory, [*LABELS, "--quiet", "--lr", "3e-2", "--schedule", "constant", "--eval-every", 1,
                               "--best-metric", "eval_loss"], (4, 2))
    assert metrics_of(one)["best_step"] < 5, "the last step is the best: nothing was read again"


@nightly
def test_continued_at_another_number_of_processes(directory):
    prepared()
    out = directory / "run"
    line = [*LABELS, "--quiet", "--save-every", 1, "--keep-checkpoints", 9, "--output", out]
    succeed(*line)
    expected = results_of(out)
    for processes, hosts in ((4, 1), (1, 1), (3, 2)):
        cut_back(out, 2)
        succeed(*line, "--resume") if processes == 1 else succeed_on(processes, *line, "--resume", hosts=hosts)
        same_results(out, expected)


def test_a_checkpoint_does_not_depend_on_processes(directory):
    prepared()
    contents = []
    for processes, hosts in ((1, 1), (4, 2)):
        out = directory / "run"
        line = [*LABELS, "--quiet", "--save-every", 2, "--keep-checkpoints", 9, "--output", out]
        succeed(*line) if processes == 1 else succeed_on(processes, *line, hosts=hosts)
        text = harness.run("inspect", out / "checkpoints/step-00000004.h5", "--json").out
        assert text
        cut_back(out, 4)
        succeed(*line, "--resume")
        contents.append((text, results_of(out)))
        shutil.rmtree(out)
    assert contents[0] == contents[1]


def test_predict_and_evaluate(directory):
    prepared()
    succeed(*LABELS, "--quiet", "--output", directory / "run")
    model = ["--model", directory / "run", "--device", "cuda", "--precision", "fp32"]
    data = "".join(EVAL.read_text().splitlines(keepends=True)[:30])
    line = ["predict", *model, "--input", "-", "--output", "-", "--batch-size", 7]
    expected = succeed(*line, stdin=data).out
    assert expected.count("\n") >= 30
    for processes, hosts in ((3, 1), (4, 2)):
        assert succeed_on(processes, *line, stdin=data, hosts=hosts).out == expected
    rows = directory / "rows.csv"
    rows.write_text(data)
    line = ["evaluate", *model, "--data", rows, "--label-column", "category", "--json", "--no-progress", "--output"]
    expected = harness.metrics_in(succeed(*line, directory / "e1").out)
    assert harness.metrics_in(succeed_on(2, *line, directory / "e2").out) == expected
    for path in (directory / "e1").iterdir():
        assert (directory / "e2" / path.name).read_bytes() == path.read_bytes(), path


def test_a_killed_process_ends_the_job(directory):
    prepared()
    a_killed_process_ends_the_job(directory / "run")


def test_no_gpu_is_told_once(directory):
    need_mpirun()
    need(*NAMES)
    if not Path("/dev/nvidiactl").exists():
        job = Job("-n", 3, CPU_BINARY, *LABELS, "--output", directory / "run")
        one_error(job.wait(), 5, "--device cuda")
        assert not (directory / "run").exists()


main(globals(), at_once=3)
