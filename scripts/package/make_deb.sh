#!/usr/bin/env bash
# Makes a .deb of an installed program. Its dependencies follow from the libraries of the program.
#   scripts/package/make_deb.sh STAGE OUTPUT      meson install made STAGE/usr
# $PACKAGE_MAINTAINER is the package's maintainer, "Name <address>"; $SOURCE_DATE_EPOCH its date.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
stage=$(realpath "$1")
output=$(realpath "$2")
maintainer=${PACKAGE_MAINTAINER:-finetune developers <finetune@finetune.invalid>}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2> /dev/null || date +%s)}
export SOURCE_DATE_EPOCH
program=$stage/usr/bin/finetune
version=$("$program" --version)-1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$work/package
mkdir -p "$package/DEBIAN" "$work/debian"
cp -r "$stage/usr" "$package/usr"
find "$package" -type d -exec chmod 755 {} +
find "$package/usr/share" -type f -exec chmod 644 {} +
# Remove the build machine's library paths: the package's libraries are in the system's folders.
patchelf --remove-rpath "$package/usr/bin/finetune"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$package/usr/bin/finetune"
mv "$package/usr/share/zsh/site-functions" "$package/usr/share/zsh/vendor-completions"
gzip -9n "$package"/usr/share/man/man1/*.1

documents=$package/usr/share/doc/finetune
mkdir -p "$documents"
cp "$root/README.md" "$documents/README.md"
gzip -9nc "$root/CHANGELOG.md" > "$documents/changelog.gz"
gzip -9nc > "$documents/changelog.Debian.gz" << END
finetune ($version) unstable; urgency=medium

  * Made by scripts/package/make_deb.sh; changelog.gz has what is new.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
cat > "$documents/copyright" << END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: finetune

Files: *
Copyright: 2026 The finetune authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
END
chmod 644 "$documents"/*

# dpkg-shlibdeps only runs in a source package.
printf 'Source: finetune\n\nPackage: finetune\nArchitecture: amd64\n' > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O -e "$package/usr/bin/finetune" | sed -n 's/^shlibs:Depends=//p')
size=$(du -k -s "$package/usr" | cut -f1)
cat > "$package/DEBIAN/control" << END
Package: finetune
Version: $version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $size
Depends: $depends
Recommends: openmpi-bin
Section: science
Priority: optional
Description: fine-tunes BERT from the command line
 Text classification and question answering with pretrained BERT models, on
 the CPU: training, evaluation, prediction, sweeps over settings, comparison
 of runs, and gates for regression tests. It reads the weights of any common
 format and writes directories that Hugging Face transformers loads.
 .
 The processor needs AVX2. Several processes on one or more hosts need mpirun
 from openmpi-bin.
END
(cd "$package" && find usr -type f -printf '%P\n' | sort | sed 's|^|usr/|' | xargs md5sum > DEBIAN/md5sums)
chmod 644 "$package"/DEBIAN/*
dpkg-deb --root-owner-group --build -Zxz "$package" "$output/finetune_${version}_amd64.deb" > /dev/null
echo "$output/finetune_${version}_amd64.deb depends on $depends"
