#!/usr/bin/env bash
# Counts files, lines of code and of comments by folder, and the words of documents.
#   scripts/house.sh [REVISION]      default: the files that git knows, as they are now
# Generated tables and pages are counted apart ("generated" or "Generated" in one of the first three lines).
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  git archive "$1" | tar -x -C "$tree"
  list() { (cd "$tree" && find . -type f -printf '%P\n'); }
else
  tree=.
  list() { git ls-files; }
fi

list | grep -E '^(src|tasks|tokenizer|data|tests|scripts|docs)/|^[A-Z][A-Z]*\.md$' | sort |
  awk -v tree="$tree" '
  function folder_of(path, part, n) {
    n = split(path, part, "/")
    if (path ~ /^(src|tests)\// && n > 2) return part[1] "/" part[2]
    return n > 1 ? part[1] : "."
  }
  function is_code(path) { return path ~ /\.(cpp|h|cu|cuh|inc|py|sh|c)$/ }
  {
    path = $0
    if (!is_code(path) && path !~ /\.md$/) next
    folder = folder_of(path); text = ""; lines = code = comments = words = generated = 0; file = tree "/" path
    while ((getline line < file) > 0) {
      if (++lines <= 3 && line ~ /[Gg]enerated (by|from)/) generated = 1
      if (line ~ /^[ \t]*(\/\/|#[^a-z]|#$|\*|\/\*)/) comments++
      else if (line !~ /^[ \t]*$/) code++
      words += split(line, unused)
    }
    close(file)
    if (path ~ /\.md$/) { kind = generated ? "generated" : "by hand"; documents[kind] += words; pages[kind]++; next }
    if (generated) { made_files++; made_lines += lines; next }
    files[folder]++; total_lines[folder] += lines; total_code[folder] += code; total_comments[folder] += comments
    if (lines < 60) small[folder]++
  }
  END {
    printf "%-22s %6s %8s %8s %9s %9s\n", "folder", "files", "lines", "code", "comments", "under 60"
    order = "sort"
    for (folder in files)
      printf "%-22s %6d %8d %8d %9d %9d\n", folder, files[folder], total_lines[folder], total_code[folder], \
        total_comments[folder], small[folder] | order
    close(order)
    for (folder in files) if (folder ~ /^(src|tasks|tokenizer|data)/) {
      f += files[folder]; l += total_lines[folder]; c += total_code[folder]; m += total_comments[folder]; s += small[folder]
    }
    printf "%-22s %6d %8d %8d %9d %9d\n", "the program", f, l, c, m, s
    printf "%-22s %6d %8d\n", "generated code", made_files, made_lines
    for (kind in documents) printf "documents %-12s %6d pages %8d words\n", kind, pages[kind], documents[kind]
  }'
