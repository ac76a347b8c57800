"""plan --world: layouts by formula, and impossible ones."""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, TRAIN
from harness import BINARY, GOLDEN, fail, main, need, succeed

# The founding documents' example, on 120 hosts of 8.
LARGEST = ["--world", 960, "--hosts", 120, "--shape", "96,12288,96,49152", "--batch-size", 960,
           "--micro-batch-tokens", 1024]
BASE = ["--world", 8, "--shape", "base", "--task", "qa"]


def plan(*arguments):
    return json.loads(succeed("plan", *arguments, "--json").out)


def rows(text):
    """(rank, host, d, p, t) of each line of the printed table."""
    lines = text.split("parameters\n", 1)[1].splitlines()
    found = []
    for line in lines:
        words = line.split()
        if len(words) < 6 or not words[0].isdigit():
            return found
        found.append((int(words[0]), words[1], *map(int, words[2:5])))
    return found


def test_placements(directory):
    tables = {"cluster": "000 001 010 011 100 101 110 111", "DTP": "000 010 001 011 100 110 101 111",
              "PDT": "000 001 100 101 010 011 110 111", "PTD": "000 100 001 101 010 110 011 111",
              "TDP": "000 010 100 110 001 011 101 111", "spread": "000 100 010 110 001 101 011 111"}
    for word, table in tables.items():
        text = succeed("plan", *BASE, "--hosts", 2, "--tp", 2, "--pp", 2, "--placement", word).out
        places = [f"{d}{p}{t}" for _, _, d, p, t in rows(text)]
        assert places == table.split(), (word, text)
        assert [host for _, host, *_ in rows(text)] == 4 * ["host0"] + 4 * ["host1"], text
        assert ("warning: 4 of 4 groups of tensor ranks are on several hosts" in text) == (word[0] in "Ts"), text
    text = succeed("plan", *LARGEST, "--tp", 8, "--pp", 6).out
    assert len(rows(text)) == 16 and "944 more" in text, text


def test_numbers(directory):
    forecast = plan(*BASE, "--tp", 2, "--pp", 2, "--batch-size", 32, "--precision", "fp32")
    assert (forecast["dp"], forecast["pp"], forecast["tp"], forecast["world"]) == (2, 2, 2, 8)
    # Four micro-batches per stage: 8 of 2 samples for each replica.
    assert forecast["replica_micro_batches"] == 8 and forecast["micro_batch_tokens"] == 1024
    assert abs(forecast["bubble"] - 1 / 9) < 1e-12
    assert forecast["virtual_shards"] == 2 and forecast["tensor_shards"] == 2
    first, last = forecast["stages"]
    assert first["chunks"] == [[0, 6]] and last["chunks"] == [[6, 12]]
    h, inner = 768, 3072
    cut = 4 * h * h + 3 * h + 2 * h * inner + inner
    embeddings = (30522 + 512 + 2) * h + 2 * h
    assert first["parameters"] == 6 * (cut // 2 + 6 * h) + embeddings
    assert last["parameters"] == 6 * (cut // 2 + 6 * h) + 2 * h + 2
    for stage in (first, last):
        assert stage["weights_bytes"] == stage["gradients_bytes"] == 4 * stage["parameters"]
        assert stage["whole_moments_bytes"] == 8 * stage["parameters"] == 2 * stage["moments_bytes"]
        parts = ("weights", "gradients", "moments", "kept", "working")
        assert stage["memory_bytes"] == sum(stage[f"{part}_bytes"] for part in parts)
        assert stage["tp_bytes"] == 4 * 6 * 8 * 1 * 4 * 1024 * h
        assert stage["pp_bytes"] == 4 * 1024 * h * 8 and stage["pp_boundary_bytes"] == 2 * stage["pp_bytes"]
    gaps = last["dp_bytes"] / (4 * last["parameters"]) - 1  # 2 (d - 1) / d of the parameters and of the arena's gaps
    assert 0 <= gaps < 0.01, last
    assert (first["slots"], last["slots"]) == (2, 1)
    assert forecast["memory_bytes"] == first["memory_bytes"]
    parts = ("passes", "data", "update")
    assert abs(forecast["step_seconds"] - sum(forecast[f"{part}_seconds"] for part in parts)) < 1e-12
    assert abs(forecast["samples_per_second"] * forecast["step_seconds"] - 32) < 1e-9


def test_schedules_and_memory(directory):
    run = [*BASE, "--pp", 4, "--batch-size", 64, "--micro-batches", 8]
    plain, gpipe, simple = (plan(*run, "--pipeline-schedule", word) for word in ("1f1b", "gpipe", "simple"))
    assert [stage["slots"] for stage in plain["stages"]] == [4, 3, 2, 1]
    assert [stage["slots"] for stage in gpipe["stages"]] == 4 * [8]
    assert gpipe == simple and gpipe["memory_bytes"] > plain["memory_bytes"]
    chunked = plan(*run, "--pipeline-schedule", "interleaved", "--chunks", 3)
    assert chunked["stages"][0]["chunks"] == [[0, 1], [4, 5], [8, 9]]
    assert abs(chunked["bubble"] - 3 / 27) < 1e-12 < plain["bubble"] - 3 / 11 + 1e-11
    assert chunked["stages"][3]["slots"] == 2 * 4 + 1
    assert plan(*run, "--stages", "1,3,4,4")["stages"][0]["chunks"] == [[0, 1]]
    # Suggestions to save memory: recompute, offload, a shorter horizon, smaller micro-batches.
    recompute = [*run, "--recompute"]
    forecasts = [plain, plan(*recompute), plan(*recompute, "--offload-activations"),
                 plan(*recompute, "--offload-activations=1")]
    kept = [forecast["stages"][0]["kept_bytes"] for forecast in forecasts]
    assert kept == sorted(kept, reverse=True) and len(set(kept)) == 4, kept
    assert [forecast["offload_horizon"] for forecast in forecasts] == [0, 0, 4, 1]
    assert forecasts[2]["stages"][0]["offloaded_bytes"] > 0 == forecasts[1]["stages"][0]["offloaded_bytes"]
    assert plan(*run[:-1], 16)["stages"][0]["kept_bytes"] == kept[0] // 2


def test_all_layouts(directory):
    forecast = plan(*LARGEST, "--recompute", "--device-memory", "40G")
    layouts = forecast["layouts"]
    assert all(row["dp"] * row["pp"] * row["tp"] == 960 and 96 % row["tp"] == 0 and row["pp"] <= 96
               for row in layouts)
    assert len({(row["pp"], row["tp"]) for row in layouts}) == len(layouts)
    fitting = [row for row in layouts if row["fits"]]
    assert fitting == layouts[:len(fitting)] and 0 < len(fitting) < len(layouts)
    assert all(row["memory_bytes"] <= 40e9 for row in fitting)
    times = [row["step_seconds"] for row in fitting]
    assert times == sorted(times)
    assert {name: forecast[name] for name in layouts[0]} == layouts[0]
    # Asking for one of them directly gives the same forecast.
    asked = plan(*LARGEST, "--recompute", "--device-memory", "40G", "--tp", fitting[3]["tp"], "--pp", fitting[3]["pp"])
    assert {name: asked[name] for name in fitting[3]} == fitting[3] and "layouts" not in asked
    text = succeed("plan", *LARGEST, "--recompute", "--device-memory", "40G").out
    assert f"{len(fitting)} of {len(layouts)} layouts fit 40.0 GB" in text and "Assumed, not measured" in text
    nothing = succeed("plan", *LARGEST, "--device-memory", "1G").out
    assert "0 of" in nothing and "It does not fit a device of 1.00 GB" in nothing, nothing
    # If the model fits on one device, data parallelism is the fast axis.
    for shape in ("base", "large"):
        first = plan("--world", 8, "--shape", shape, "--batch-size", 256)["layouts"][0]
        assert (first["dp"], first["pp"], first["tp"]) == (8, 1, 1), first


def test_model_and_rates(directory):
    need(*MODELS)
    forecast = plan("--model", MODEL, "--world", 2, "--tp", 2, "--train", TRAIN)  # the data is not read
    assert forecast["parameters"] > 0 and forecast["length"] <= 512
    assert plan("--model", MODEL, "--world", 2, "--tp", 2, "--max-length", 64)["length"] == 64
    slow, fast = (plan(*BASE, "--tp", 2, "--flops", flops)["passes_seconds"] for flops in (1, 1000))
    assert slow > 10 * fast
    near, far = (plan(*BASE, "--hosts", hosts, "--tp", 4)["tensor_seconds"] for hosts in (1, 8))
    assert far > near


def test_what_is_impossible(directory):
    for arguments, words in (
            (["--tp", 3], ["8 processes", "--pp 1", "--tp 3"]),
            (["--pp", 8, "--shape", "4,64,4,256"], ["--pp 8", "8 layers", "has 4"]),
            (["--tp", 2, "--tensor-shards", 3], ["--tensor-shards 3", "--tp 2"]),
            (["--tp", 8], ["12 attention heads", "--tensor-shards 8"]),
            (["--tp", 2, "--shape", "4,64,4,255"], ["255 columns", "--tensor-shards 2"]),
            (["--tensor-shards", 7], ["--tensor-shards 7", "12 attention heads"]),
            (["--pp", 2, "--stages", "7,4"], ["'7,4'", "11 layers", "12"]),
            (["--pp", 2, "--stages", "4,4,4"], ["3 stages", "--pp is 2"]),
            (["--stages", "6,6"], ["--stages", "--pp"]),
            (["--pp", 2, "--chunks", 2], ["--chunks 2", "interleaved", "1f1b"]),
            (["--pp", 4, "--pipeline-schedule", "interleaved", "--chunks", 4], ["16 layers", "has 12"]),
            (["--pp", 2, "--pipeline-schedule", "fast"], ["--pipeline-schedule", "'fast'"]),
            (["--pp", 2, "--micro-batches", 4, "--micro-batch-tokens", 512], ["--micro-batches 4", "512"]),
            (["--pp", 2, "--offload-activations"], ["--offload-activations 4", "--recompute"]),
            (["--pp", 2, "--offload-activations", "--recompute", "--device", "cpu"], ["--offload-activations", "cpu"]),
            (["--placement", "DDT"], ["--placement", "'DDT'"]),
            (["--hosts", 9], ["--hosts 9", "8 processes"]),
            (["--processes", 2], ["--processes 2", "--world 8"]),
            (["--length", 513], ["--length 513", "512"]),
            (["--batch-size", 2**24], ["--batch-size 16777216", "tokens"]),
            (["--device-memory", "lots"], ["--device-memory", "'lots'"]),
            (["--flops", 0], ["--flops 0"]),
            (["--shape", "4,10,3,20"], ["hidden_size 10", "num_attention_heads 3"]),
            (["--shape", "1,2,3"], ["--shape", "LAYERS"]),
            (["--shape", "4096,1048576,1,1048576"], ["billion parameters"]),
            (["--world", 0], ["--world 0"]),
            (["--model", "x"], ["--model", "--shape"])):
        fail(2, "plan", *BASE, *arguments, words=words)
    fail(2, "plan", "--hosts", 2, words=["--hosts '2'", "--world"])
    fail(2, "plan", "--world", 8, words=["--shape", "--model"])
    fail(4, "plan", "--world", 8, "--model", directory, words=["config.json"])


def test_a_run_in_parts(directory):
    """Without --world: the run that train would start with these options, or with a config.toml."""
    need("golden/trajectory-classification-train.csv")
    run = ["--model", GOLDEN / "tiny-bert-classification", "--train", GOLDEN / "trajectory-classification-train.csv",
           "--label-column", "category", "--no-time"]
    whole = json.loads(succeed("plan", *run, "--json").out)
    config = directory / "config.toml"
    config.write_text("pp = 2\ntp = 2\nplacement = \"spread\"\nmicro-batches = 8\n")
    for processes, replicas in ((None, 1), (8, 2)):
        found = json.loads(succeed("plan", *run, "--config", config, "--json",
                                   *(["--processes", processes] if processes else [])).out)
        assert (found["processes"], found["dp"], found["pp"], found["tp"]) == (4 * replicas, replicas, 2, 2), found
        assert found["parameters"] == whole["parameters"] and found["virtual_shards"] == replicas, found
        assert found["weights_mb"] < whole["weights_mb"] and found["peak_disk_mb"] == whole["peak_disk_mb"], found
    assert "2 x 2 x 2" in succeed("plan", *run, "--config", config, "--processes", 8).out
    fail(2, "plan", *run, "--config", config, "--processes", 6, words=["6 processes", "--pp 2", "--tp 2"])
    fail(2, "plan", *run, "--pp", 3, words=["--pp 3", "3 layers"])


def test_tables_of_the_documentation(directory):
    script = Path(__file__).resolve().parents[3] / "scripts/generate/layout_tables.py"
    done = subprocess.run([sys.executable, script, "--check", BINARY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


main(globals())
