"""Runs a command from a small process, because a child inherits its parent's peak memory.

measured.py FILE COMMAND...   FILE gets {"seconds": processor time, "mb": peak of the largest process}
"""
import json
import resource
import subprocess
import sys

code = subprocess.call(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({"seconds": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1024}, file)
sys.exit(code if code >= 0 else 128 - code)
