#!/usr/bin/env python3
"""Executes a Containerfile's steps in plain folders by chroot, without a container engine.

usage: run_containerfile.py CONTAINERFILE CONTEXT BASE_TAR FOLDER

For every FROM it unpacks BASE_TAR (a minimal Debian 12 of debootstrap) to FOLDER/NUMBER, whatever image FROM names. It
knows FROM, WORKDIR, COPY, RUN and ENTRYPOINT as scripts/package/Containerfile uses them, but no layers or caches. The
last line printed is the folder of the last stage. Mounts are in a namespace of their own and end with it.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

IN_ROOT = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && '
           'cp /etc/resolv.conf "$0/etc/" && exec chroot "$0" /bin/sh -c "cd \'$1\' && $2"')


def run_in(root, folder, command):
    subprocess.run(["unshare", "--mount", "sh", "-c", IN_ROOT, root, folder, command], check=True,
                   env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "LC_ALL": "C.UTF-8",
                        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})


def steps(path):
    text = path.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word.upper(), rest.strip()


def copied_names(context):
    """Applies .dockerignore, which holds names, or beginnings of names, at the top level."""
    left_out = (context / ".dockerignore").read_text().split()
    for path in context.iterdir():
        if not any(path.match(pattern) for pattern in left_out):
            yield path


def copy(source, target):
    target.mkdir(parents=True, exist_ok=True)
    for path in copied_names(source) if (source / ".dockerignore").exists() else source.iterdir():
        if path.is_dir():
            shutil.copytree(path, target / path.name, symlinks=True)
        else:
            shutil.copy2(path, target / path.name)


def main():
    containerfile, context, base, folder = map(Path, sys.argv[1:5])
    stages, names, place = [], {}, "/"
    for word, rest in steps(containerfile):
        print(f"{word} {rest}", file=sys.stderr, flush=True)
        if word == "FROM":
            root = (folder / str(len(stages))).resolve()
            root.mkdir(parents=True)
            subprocess.run(["tar", "-xf", base, "-C", root], check=True)
            names[rest.split()[-1]] = root
            stages.append(root)
            place = "/"
        elif word == "WORKDIR":
            place = rest
            (root / place[1:]).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            words = rest.split()
            source = context
            if words[0].startswith("--from="):
                source = names[words.pop(0)[len("--from="):]] / words[0].lstrip("/")
            elif words[0] != ".":
                source = context / words[0]
            copy(source, root / os.path.normpath(os.path.join(place, words[1])).lstrip("/"))
        elif word == "RUN":
            run_in(root, place, rest)
        elif word != "ENTRYPOINT":
            sys.exit(f"run_containerfile: error: {word} is not known")
    print(stages[-1])


main()
