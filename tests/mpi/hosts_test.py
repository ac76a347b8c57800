"""Two hosts for real: network namespaces joined by a cable (veth), a daemon of mpirun's in each.

Needs root and iproute2; else the tests are skipped.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, TRAIN  # noqa: E402
from harness import BINARY, PATIENCE, Skip, facts_of, main, metrics_of, need, succeed  # noqa: E402

ADDRESSES = ("10.77.31.1", "10.77.31.2")
TAG = f"ft{os.getpid() % 100000}"
NAMES = tuple(f"{TAG}{letter}" for letter in "ab")


def shell(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"{' '.join(command)}: {done.stderr.strip()}")


class TwoHosts:
    """The namespaces, and what mpirun needs to start its daemon in the second one."""

    def __init__(self, directory):
        self.directory = directory

    def __enter__(self):
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("mpirun"):
            raise Skip("needs root, iproute2 and mpirun")
        for name in NAMES:
            shell("ip", "netns", "add", name)
        try:
            shell("ip", "link", "add", f"{TAG}0", "netns", NAMES[0], "type", "veth", "peer", "name", f"{TAG}1",
                  "netns", NAMES[1])
            for name, address, device in zip(NAMES, ADDRESSES, (f"{TAG}0", f"{TAG}1")):
                shell("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
                shell("ip", "-n", name, "link", "set", device, "up")
                shell("ip", "-n", name, "link", "set", "lo", "up")
        except Skip:
            self.__exit__()
            raise
        agent = self.directory / "agent.sh"
        agent.write_text("#!/bin/sh\n"
                         "shift  # the host: there is only one other\n"
                         f'exec ip netns exec {NAMES[1]} unshare --uts sh -c "hostname {NAMES[1]}; $*"\n')
        agent.chmod(0o755)
        (self.directory / "hosts").write_text("".join(f"{address} slots=2\n" for address in ADDRESSES))
        return self

    def __exit__(self, *_):
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def run(self, processes, *arguments, timeout=PATIENCE):
        network = ADDRESSES[0].rsplit(".", 1)[0] + ".0/24"
        launcher = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", str(self.directory / "agent.sh"),
                    "--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", network, "--mca",
                    "oob_tcp_if_include", network, "--hostfile", str(self.directory / "hosts"), "--bind-to", "none",
                    "-n", str(processes), BINARY, *map(str, arguments)]
        inside = f'hostname {NAMES[0]}; exec "$@"'
        return subprocess.run(["ip", "netns", "exec", NAMES[0], "unshare", "--uts", "sh", "-c", inside, "sh",
                               *launcher], capture_output=True, text=True, timeout=timeout)


def compare(directory, hosts, name, *arguments, layout=()):
    alone, spread = directory / f"{name}-alone", directory / f"{name}-spread"
    common = ("train", "--max-steps", 8, "--batch-size", 11, "--dropout", 0.1, "--virtual-shards", 8, "--save-every",
              3, "--eval-every", 4, "--no-progress", *arguments)
    succeed(*common, "--output", alone)
    done = hosts.run(4, *common, *layout, "--output", spread)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "4 processes on 2 hosts" in done.stderr, done.stderr
    assert facts_of(spread)["hosts"] == "2"
    assert facts_of(alone)["weights_sha256"] == facts_of(spread)["weights_sha256"]
    assert metrics_of(alone)["eval_loss"] == metrics_of(spread)["eval_loss"]
    for file in ("predictions.csv", "predictions.json"):
        if (alone / file).exists():
            assert (alone / file).read_bytes() == (spread / file).read_bytes()
    return alone, spread


def test_two_hosts_of_two_processes_train_to_the_bits_of_one_process(directory):
    need(*MODELS)
    with TwoHosts(directory) as hosts:
        compare(directory, hosts, "classification", "--model", MODEL, "--train", TRAIN, "--eval", EVAL,
                "--label-column", "category")
        compare(directory, hosts, "qa", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD)


def test_tensor_ranks_between_hosts(directory):
    need(*MODELS)
    cut = ("--tensor-shards", 2, "--micro-batches", 2)
    with TwoHosts(directory) as hosts:
        compare(directory, hosts, "classification", "--model", MODEL, "--train", TRAIN, "--eval", EVAL,
                "--label-column", "category", *cut, layout=("--tp", 2, "--placement", "spread"))
        compare(directory, hosts, "qa", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, *cut,
                layout=("--tp", 2, "--pp", 2, "--placement", "TPD"))


def test_a_checkpoint_of_two_hosts_continues_on_one_and_the_other_way_round(directory):
    need(*MODELS)
    run = ("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-steps", 9, "--keep-checkpoints", 9,
           "--save-every", 4, "--virtual-shards", 4, "--no-progress", "--batch-size", 10)
    succeed(*run, "--output", directory / "whole")
    wanted = facts_of(directory / "whole")["weights_sha256"]
    with TwoHosts(directory) as hosts:
        # The state of a run stopped after step 4: later files are removed.
        for name, first, then in (("a", hosts.run, None), ("b", None, hosts.run)):
            out = directory / name
            if first:
                assert first(4, *run, "--output", out).returncode == 0
            else:
                succeed(*run, "--output", out)
            for later in (out / "metrics.json", out / "checkpoints" / "step-00000009.h5",
                          out / "checkpoints" / "step-00000008.h5"):
                later.unlink()
            before = sorted(p.name for p in (out / "checkpoints").iterdir())
            assert before == ["step-00000004.h5"], before
            if then:
                done = then(3, *run, "--output", out, "--resume")
                assert done.returncode == 0, done.stderr[-3000:]
            else:
                succeed(*run, "--output", out, "--resume")
            assert facts_of(out)["weights_sha256"] == wanted


if __name__ == "__main__":
    main(globals())
