#!/usr/bin/env python3
"""Checks commit messages: a subject of at most 72 characters, and no path of anybody's machine.

usage: check_message.py FILE              a message, as git's commit-msg hook gives it
       check_message.py --range A..B      all messages of a range, none of which may be a merge commit

Exits 1 and prints one line for each fault.
"""
import re
import subprocess
import sys

LONGEST = 72
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|Users|mnt)/\S+|[A-Z]:\\\S+")


def faults_of(message):
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if not subject:
        yield "the subject is empty"
    if len(subject) > LONGEST:
        yield f"the subject has {len(subject)} characters, more than {LONGEST}: {subject}"
    for path in MACHINE.findall("\n".join(lines)):
        yield f"the message names a path of a machine: {path}"


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--range":
        found = [f"{commit[:8]}: {fault}" for commit in git("rev-list", arguments[1]).split()
                 for fault in faults_of(git("show", "-s", "--format=%B", commit))]
        found += [f"{commit[:8]}: a merge commit" for commit in git("rev-list", "--merges", arguments[1]).split()]
    elif len(arguments) == 1:
        with open(arguments[0], encoding="utf-8") as file:
            found = list(faults_of(file.read()))
    else:
        sys.exit(__doc__)
    print("".join(f"check_message: {fault}\n" for fault in found), end="")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1:])
