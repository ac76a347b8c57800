"""Benchmarks: the form of their reports, on tiny shapes. Speed is never tested."""
import json
import re

from harness import GOLDEN, fail, main, need, run, succeed

TINY = GOLDEN / "tiny-bert-classification"


def bench(*arguments):
    return json.loads(succeed("bench", *arguments, "--json").out)


def has_onednn():
    return not re.search("^oneDNN .*not built in", succeed("doctor").out, re.M)


def check_step(result, samples_per_step):
    for name in ("samples_per_second", "tokens_per_second", "flops_per_second", "memory_peak_bytes_per_second",
                 "peak_memory_mb"):
        assert result[name] > 0, (name, result)
    rate, share = result["matmul_peak_flops_per_second"], result["share_of_matmul_peak"]
    if rate is not None or has_onednn():
        assert abs(share / (result["flops_per_second"] / rate) - 1) < 1e-9, (share, rate)
    else:
        assert share is None, share
    assert result["batch_size"] == samples_per_step
    # All rates are based on the same time: the seconds of all steps.
    seconds = result["steps"] * samples_per_step / result["samples_per_second"]
    tokens = result["tokens_per_sample"] * result["steps"] * samples_per_step
    assert abs(result["tokens_per_second"] * seconds / tokens - 1) < 1e-9, result
    assert abs(result["flops_per_second"] / (result["flops_per_token"] * result["tokens_per_second"]) - 1) < 1e-9
    assert result["processes"] == 1 and result["communication_share"] == 0, result["communication_share"]
    assert result["step_seconds_min"] <= result["step_seconds_median"] <= result["step_seconds_max"]
    shares = sum(op["share"] for op in result["ops"])
    assert shares <= 1 and abs(shares + result["between_operations_share"] - 1) < 1e-9, shares
    by_name = {(op["phase"], op["op"]): op for op in result["ops"]}
    assert len(by_name) == len(result["ops"]), "an operation is listed twice"
    for phase, op in (("forward", "embed"), ("forward", "linear"), ("forward", "attention"),
                      ("backward", "linear_backward_weight"), ("backward", "linear_backward_input"),
                      ("backward", "attention_backward"), ("backward", "embed_backward"),
                      ("update", "adamw"), ("update", "block_square_sums")):
        assert by_name[phase, op]["calls"] > 0 and by_name[phase, op]["bytes_per_second"] > 0, (phase, op)
    # Matrix products are listed as details of their operations.
    linear = sum(part["seconds"] for part in result["matrix_products"]
                 if (part["phase"], part["op"]) == ("forward", "linear"))
    assert abs(linear / by_name["forward", "linear"]["seconds"] - 1) < 1e-9
    return by_name


def flops_of_a_step(result, op):
    return op["flops_per_second"] * op["seconds"]


def test_fixed_lengths(_):
    # The arithmetic can be computed by hand: 2 layers, 128 wide, 512 inside, 4 sequences of 10 tokens.
    result = bench("step", "--shape", "tiny", "--lengths", 10, "--batch-size", 4, "--steps", 2, "--threads", 1)
    assert result["threads"] == 1 and result["tokens_per_sample"] == 10 and result["task"] == "classification"
    by_name = check_step(result, 4)
    t, b, h, inner, classes = 40, 4, 128, 512, 24
    whole = 2 * t * (4 * h * h + 2 * h * inner)                               # first layer
    cls_only = 2 * t * 2 * h * h + 2 * b * (2 * h * h + 2 * h * inner)        # last layer
    head = 2 * b * h * (h + classes)
    assert abs(flops_of_a_step(result, by_name["forward", "linear"]) / (whole + cls_only + head) - 1) < 1e-9
    for gradient in ("linear_backward_weight", "linear_backward_input"):
        assert abs(flops_of_a_step(result, by_name["backward", gradient]) / (whole + cls_only + head) - 1) < 1e-9
    again = bench("step", "--shape", "tiny", "--lengths", 10, "--batch-size", 4, "--steps", 2, "--recompute")
    assert check_step(again, 4)["backward", "linear"]["calls"] == 4  # the first layer's
    attention = 4 * h * (b * 10 * 10 + b * 1 * 10)
    assert abs(flops_of_a_step(result, by_name["forward", "attention"]) / attention - 1) < 1e-9
    assert abs(flops_of_a_step(result, by_name["backward", "attention_backward"]) / (2 * attention) - 1) < 1e-9
    assert by_name["forward", "linear"]["calls"] == 2 * 4 + 1 + 2  # the last layer's query apart; pooler, classifier


def test_yardstick(_):
    """fp32 results are shown beside oneDNN's rate if it is built in; otherwise the report says that it is missing."""
    line = ["--shape", "tiny", "--lengths", 10, "--batch-size", 2, "--precision", "fp32"]
    missing = not has_onednn()
    result = bench("step", *line, "--steps", 1)
    assert result["precision"] == "fp32" and (result["matmul_peak_flops_per_second"] is None) is missing, result
    for text in (succeed("bench", "step", *line, "--steps", 1).out, succeed("bench", "ops", *line).out):
        assert ("not measured: oneDNN is not built in" in text) is missing, text
        rows = [row for row in text.splitlines() if row.startswith("  linear")]
        assert rows and all(row.count("%") == 1 + (not missing) + ("ms a step" in text) for row in rows), text


def test_bank_lengths(_):
    result = bench("step", "--shape", "tiny", "--lengths", "bank", "--steps", 3)
    check_step(result, 32)
    assert result["steps"] == 3 and 11 < result["tokens_per_sample"] < 16, result


def test_squad_lengths(_):
    result = bench("step", "--shape", "tiny", "--lengths", "squad", "--steps", 3, "--batch-size", 4)
    by_name = check_step(result, 4)
    assert result["task"] == "qa" and 110 < result["tokens_per_sample"] < 240, result
    assert ("forward", "span_cross_entropy") in by_name


def test_of_a_model_directory(_):
    need("golden/tiny-bert-classification/config.json")
    result = bench("step", "--shape", TINY, "--lengths", 12, "--batch-size", 2, "--steps", 1,
                   "--threads", 1, "--clock", "cpu")
    check_step(result, 2)
    assert result["clock"] == "cpu"


def test_text_report(_):
    out = succeed("bench", "step", "--shape", "tiny", "--lengths", 10, "--batch-size", 2, "--steps", 1).out
    for word in ("samples/s", "tokens/s", "GFLOP/s", "attention_backward", "between operations"):
        assert word in out, out


def test_ops(_):
    for lengths in ("bank", "squad"):
        result = bench("ops", "--shape", "tiny", "--lengths", lengths, "--batch-size", 2)
        names = [op["op"] for op in result["ops"]]
        assert names.count("linear") == 4 and "adamw" in names and "attention_backward" in names, names
        for op in result["ops"]:
            assert op["seconds"] > 0 and op["bytes_per_second"] > 0, op
            assert (op["flops_per_second"] > 0) == (op["op"].startswith("linear") or "attention" in op["op"]), op
            assert op["phase"] == ("backward" if "backward" in op["op"] else
                                   "update" if op["op"] in ("adamw", "block_square_sums") else "forward"), op


def test_tokenizer(directory):
    need("golden/tiny-bert-classification/config.json")
    text = directory / "texts.txt"
    lines = ["COFFEE SHOP 0142 TORONTO", "café naïve", "", "parking"] * 500
    text.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    results = [bench("tokenizer", "--model", TINY, "--input", text, "--threads", n) for n in (1, 3)]
    for result in results:
        assert result["megabytes_per_second"] >= result["median_megabytes_per_second"] > 0
        assert result["lines"] == 1500 and result["bytes"] == sum(len(line.encode()) for line in lines), result
    assert results[0]["threads"] == 1 and results[1]["threads"] == 3
    tokenized = succeed("tokenize", "--model", TINY, text).out.splitlines()
    tokens = sum(len(json.loads(line)["ids"]) - 2 for line in tokenized)  # without [CLS] and [SEP]
    assert results[0]["tokens"] == results[1]["tokens"] == tokens, (results, tokens)



def test_errors(directory):
    fail(2, "bench", "step", "--shape", "huge", words=["--shape", "huge", "minilm"])
    fail(2, "bench", "step", "--lengths", "novel", words=["--lengths", "novel"])
    fail(2, "bench", "step", "--lengths", 513, words=["--lengths", "513", "512"])
    fail(2, "bench", "step", "--batch-size", -1, words=["--batch-size"])
    fail(2, "bench", "step", "--threads", -1, words=["--threads"])
    for option, most in (("--batch-size", 65536), ("--threads", 4096), ("--virtual-shards", 65536)):
        for value in (most + 1, 2**63 - 1):
            fail(2, "bench", "step", option, value, words=[option, str(value), str(most)])
    fail(2, "bench", "step", "--virtual-shards", -1, words=["--virtual-shards"])
    fail(2, "bench", "ops", "--batch-size", 2**63 - 1, words=["--batch-size"])
    fail(2, "bench", "tokenizer", "--model", TINY, "--input", TINY / "vocab.txt", "--threads", 4097, words=["4096"])
    fail(2, "bench", "step", "--clock", "cpu", "--threads", 2, words=["--clock", "--threads 1"])
    fail(2, "bench", "tokenizer", "--model", TINY, "--input", TINY / "vocab.txt", "--clock", "cpu", words=["--clock"])
    fail(2, "bench", "nothing")
    fail(3, "bench", "tokenizer", "--model", TINY, "--input", directory / "absent.txt", words=["absent.txt"])
    empty = directory / "empty.txt"
    empty.write_text("\n\n")
    fail(3, "bench", "tokenizer", "--model", TINY, "--input", empty, words=["empty.txt"])
    fail(4, "bench", "step", "--shape", directory, words=["config.json"])
    for command in ((), ("step",), ("ops",), ("tokenizer",)):
        assert "Example" in run("bench", *command, "--help").out


main(globals())
