"""Runs a test program held to AVX2 (FINETUNE_ISA), on a processor that has more; on others it would only repeat what
the same program has tested without that.

usage: held_to_avx2.py PROGRAM [ARGUMENTS]
"""
import os
import sys

with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
    if "avx512f" not in cpuinfo.read().split():
        print("SKIPPED: AVX2 is the best that this processor has\ntest cases: 1 | 1 passed | 0 failed")
        sys.exit(0)
os.environ["FINETUNE_ISA"] = "avx2"
os.execv(sys.argv[1], sys.argv[1:])
