"""Two short runs under mpirun, for `scripts/test.sh fast`."""
from ranks import facts_of, need_mpirun, succeed_on
from harness import main, succeed
from training_jobs import EVAL, MODEL, TRAIN

LINE = ("train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--max-steps", 3,
        "--virtual-shards", 2, "--quiet", "--output")


def test_two_ranks_train_the_bits_of_one(directory):
    need_mpirun()
    succeed(*LINE, directory / "one")
    succeed_on(2, *LINE, directory / "two")
    one, two = facts_of(directory / "one"), facts_of(directory / "two")
    assert (one["processes"], two["processes"]) == ("1", "2")
    assert one["weights_sha256"] == two["weights_sha256"]


def test_two_ranks_predict_the_bytes_of_one(directory):
    need_mpirun()
    line = ("predict", "--model", MODEL, "--input", EVAL, "--quiet", "--output")
    succeed(*line, directory / "one.csv")
    succeed_on(2, *line, directory / "two.csv")
    assert (directory / "one.csv").read_bytes() == (directory / "two.csv").read_bytes()


main(globals())
