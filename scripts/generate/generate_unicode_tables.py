#!/usr/bin/env python3
"""Writes tokenizer/unicode/unicode_tables.bin from UnicodeData.txt of Unicode 15.1.

The tables hold the Unicode data of Hugging Face tokenizers 0.22.2, which come from several versions:
  categories (control, punctuation, nonspacing mark)  Unicode 8.0
  canonical decomposition and combining classes       Unicode 9.0
  lower case, white space                             Unicode 17 (the Rust release of its wheels)
  word characters                                     Unicode 16 (its regular expressions)
For sentencepiece vocabularies they also hold compatibility decomposition, combining classes and
digits from UnicodeData.txt.

  scripts/generate/generate_unicode_tables.py            rewrites tokenizer/unicode/unicode_tables.bin
  scripts/generate/generate_unicode_tables.py --check    exit 1 if the committed file has other tables
  scripts/generate/generate_unicode_tables.py --verify   compares every code point with the Python package
                                                tokenizers==0.22.2, which must be installed
"""
import argparse
import pathlib
import sys

from unicode_table_file import pack, unpack

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "text" / "unicode" / "UnicodeData-15.1.0.txt"
OUTPUT = ROOT / "tokenizer" / "unicode" / "unicode_tables.bin"

PAGE = 128
CODE_POINTS = 0x110000
SPACE, CONTROL, PUNCTUATION, MARK, CJK, WORD, LATE, DIGIT = (1 << i for i in range(8))

# Code points added after Unicode 8.0 that have one of these categories or a combining class (Cc, Cf,
# P*, Mn, ccc != 0). A range may also contain code points of any age without these properties.
AFTER_8_0 = """
061D 07FD 0890-08E2 09FD-09FE 0A76 0AFA-0AFF 0B55 0C04-0C3B 0C3C 0C77 0C84 0D00 0D3B-0D3C 0D81 0EBA
0ECE 1715 180F 1ABF-1ACE 1B7D-1B7E 1DF6-1DFB 2E43-2E5D A82C A8C5 A8FF 10D24-10F89 11070-11074
110C2-110CD 111CF 1123E-11241 1133B 11438-1145E 11660-1166C 116B9 1182F-11FFF 12FF1-13455
16E97-16F4F 16FE2-16FF1 1CF00-1CF46 1E000-1E4EF 1E944-1E95F
"""
# Those of AFTER_8_0 that have had a combining class since Unicode 9.0.
CLASS_IN_9_0 = "08D4-08E1 1DFB 11442-11446 11C3F 1E000-1E02A 1E944-1E94A"
# Unicode 8.0 categories of code points that later versions changed.
ALSO_PUNCTUATION = {0x166D, 0x111C9}
ALSO_MARK = {0x1734}
NOT_MARK = {0x1885, 0x1886, 0xA9BD, 0x111C9}
DECOMPOSED_AFTER_9_0 = {0x11938}
WHITE_SPACE = "0009-000D 0020 0085 00A0 1680 2000-200A 2028-2029 202F 205F 3000"
# The seventh range begins where Hugging Face's does (at 0x2B920, not 0x2B820).
IDEOGRAPHS = "3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B73F 2B740-2B81F 2B920-2CEAF 2F800-2FA1F"
# Word characters (regex \\w) besides letters, marks, decimal digits, letter numbers and connectors
# of UnicodeData.txt: joiners, circled letters, and characters that Unicode 16 added.
OTHER_WORD = """
200C-200D 24B6-24E9 1F130-1F149 1F150-1F169 1F170-1F189
0897 1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D40-10D65 10D69-10D6D 10D6F-10D85 10EC2-10EC4 10EFC
11380-11389 1138B 1138E 11390-113B5 113B7-113C0 113C2 113C5 113C7-113CA 113CC-113D3 113E1-113E2
116D0-116E3 11BC0-11BE0 11BF0-11BF9 11F5A 13460-143FA 16100-16139 16D40-16D6C 16D70-16D79 18CFF
1CCF0-1CCF9 1E5D0-1E5FA
"""
# Letters of Unicode 16 and 17 (upper case -> lower case).
LATE_LOWER = {0xA7CB: 0x264, 0xA7CC: 0xA7CD, 0xA7CE: 0xA7CF, 0xA7D2: 0xA7D3, 0xA7D4: 0xA7D5,
              0xA7DA: 0xA7DB, 0xA7DC: 0x19B, 0x1C89: 0x1C8A,
              **{c: c + 0x20 for c in range(0x10D50, 0x10D66)},
              **{c: c + 0x1B for c in range(0x16EA0, 0x16EB9)}}


def ranges(text):
    out = set()
    for part in text.split():
        first, _, last = part.partition("-")
        out.update(range(int(first, 16), int(last or first, 16) + 1))
    return out


def read_unicode_data(path):
    """code point -> (category, combining class, decomposition field, digit field, lower case)"""
    characters = {}
    first = None
    for line in path.read_text(encoding="ascii").splitlines():
        f = line.split(";")
        code = int(f[0], 16)
        if f[1].endswith(", First>"):
            first = code
            continue
        begin = first if f[1].endswith(", Last>") else code
        entry = (f[2], int(f[3]), f[5], f[7], int(f[13], 16) if f[13] else None)
        for c in range(begin, code + 1):
            characters[c] = entry
    return characters


class Properties:
    def __init__(self, characters):
        self.flags = [0] * CODE_POINTS
        self.combining = [0] * CODE_POINTS
        self.lower = {}       # code point -> its lower case, if that differs (U+0130 is special)
        self.canonical = {}   # code point -> full canonical decomposition (no Hangul)
        self.compatible = {}  # code point -> full compatibility decomposition (no Hangul)
        after_8 = ranges(AFTER_8_0)
        class_in_9 = ranges(CLASS_IN_9_0)
        single = {}
        for c, (category, combining, decomposition, digit, lower) in characters.items():
            old = c not in after_8
            self.combining[c] = combining
            flags = 0
            if category == "Co" or (category in ("Cc", "Cf") and old):
                flags |= CONTROL
            if category[0] == "P" and old:
                flags |= PUNCTUATION
            if category == "Mn" and old and c not in NOT_MARK:
                flags |= MARK
            if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
                flags |= WORD
            if combining and not old and c not in class_in_9:
                flags |= LATE
            if digit:
                flags |= DIGIT
            self.flags[c] = flags
            if lower is not None and c != 0x130:
                self.lower[c] = lower
            if decomposition:
                compatible = decomposition.startswith("<")
                parts = decomposition.split()[1 if compatible else 0:]
                single[c] = (compatible, [int(p, 16) for p in parts])
        self.lower.update(LATE_LOWER)
        for c in (0, 0xFFFD) + tuple(range(0xE000, 0xF900)):
            self.flags[c] |= CONTROL
        for plane in (0xF0000, 0x100000):
            for c in range(plane, plane + 0xFFFE):
                self.flags[c] |= CONTROL
        for c in (0x09, 0x0A, 0x0D):  # the normalizer keeps these as white space
            self.flags[c] &= ~CONTROL
        for c in ranges(WHITE_SPACE):
            self.flags[c] |= SPACE
        for c in ranges(IDEOGRAPHS):
            self.flags[c] |= CJK
        for c in ALSO_PUNCTUATION | ranges("0021-002F 003A-0040 005B-0060 007B-007E"):
            self.flags[c] |= PUNCTUATION
        for c in ALSO_MARK:
            self.flags[c] |= MARK
        for c in ranges(OTHER_WORD):
            self.flags[c] |= WORD

        def decompose(c, with_compatible):
            if c not in single or (single[c][0] and not with_compatible):
                return [c]
            return [d for part in single[c][1] for d in decompose(part, with_compatible)]

        for c in single:
            canonical, compatible = decompose(c, False), decompose(c, True)
            if canonical != [c] and c not in DECOMPOSED_AFTER_9_0:
                self.canonical[c] = canonical
            if compatible != [c]:
                self.compatible[c] = compatible


def tables(p):
    """column -> values, as unicode_table_file.py packs them"""
    pool, pool_index = [], {}

    def place(sequence):
        key = tuple(sequence)
        if key not in pool_index:
            pool_index[key] = len(pool)
            pool.extend(sequence)
        return pool_index[key]

    mappings, mapping_of = [(0, 0, 0, 0, 0)], {}
    for c in sorted(set(p.lower) | set(p.canonical) | set(p.compatible)):
        canonical, compatible = p.canonical.get(c, []), p.compatible.get(c, [])
        if compatible == canonical:
            compatible = []  # empty: equal to the canonical one
        mapping_of[c] = len(mappings)
        mappings.append((p.lower.get(c, c), place(canonical) if canonical else 0, len(canonical),
                         place(compatible) if compatible else 0, len(compatible)))
    assert len(mappings) < 1 << 16 and len(pool) < 1 << 16

    pages, page_of, directory = [], {}, []
    for begin in range(0, CODE_POINTS, PAGE):
        page = tuple(p.flags[c] | p.combining[c] << 8 | mapping_of.get(c, 0) << 16
                     for c in range(begin, begin + PAGE))
        if page not in page_of:
            page_of[page] = len(pages)
            pages.append(page)
        directory.append(page_of[page])
    entries = [e for page in pages for e in page]
    lower, canonical, canonical_length, compatible, compatible_length = map(list, zip(*mappings))
    return {"page_of": directory, "flags": [e & 0xFFFF for e in entries], "mapping_of": [e >> 16 for e in entries],
            "lower": lower, "canonical": canonical, "compatible": compatible,
            "canonical_length": canonical_length, "compatible_length": compatible_length, "pool": pool}


def hangul(c):
    s = c - 0xAC00
    out = [0x1100 + s // 588, 0x1161 + s % 588 // 28]
    return out + [0x11A7 + s % 28] if s % 28 else out


def verify(p):
    import tokenizers
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
    assert tokenizers.__version__ == "0.22.2", tokenizers.__version__
    bert = normalizers.BertNormalizer
    clean = bert(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    cjk = bert(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    strip = bert(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    lower = bert(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=True)
    nfd = normalizers.NFD()
    pre = pre_tokenizers.BertPreTokenizer()
    words = Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    words.add_tokens([AddedToken("@xyz@", single_word=True, normalized=False)])
    wrong = 0

    def expect(c, what, ours, theirs):
        nonlocal wrong
        if ours != theirs:
            wrong += 1
            if wrong <= 50:
                print(f"U+{c:04X} {what}: table {ours!r}, tokenizers {theirs!r}")

    def kept_class(c):
        return 0 if p.flags[c] & LATE else p.combining[c]

    probes = {}
    for c in range(CODE_POINTS):
        if kept_class(c) and c not in p.canonical:
            probes.setdefault(kept_class(c), chr(c))
    for c in range(CODE_POINTS):
        if 0xD800 <= c < 0xE000:
            continue
        ch, flags = chr(c), p.flags[c]
        cleaned = "ab" if flags & CONTROL else "a b" if flags & SPACE else f"a{ch}b"
        expect(c, "clean", cleaned, clean.normalize_str(f"a{ch}b"))
        expect(c, "ideograph", f" {ch} " if flags & CJK else ch, cjk.normalize_str(ch))
        parts = hangul(c) if 0xAC00 <= c < 0xD7A4 else p.canonical.get(c, [c])
        expect(c, "decomposition", "".join(map(chr, parts)), nfd.normalize_str(ch))
        kept = "".join(chr(d) for d in parts if not p.flags[d] & MARK)
        expect(c, "without accents", kept, strip.normalize_str(ch))
        small = "i\u0307" if c == 0x130 else chr(p.lower.get(c, c))
        expect(c, "lower case", small, lower.normalize_str(ch))
        pieces = [t for t, _ in pre.pre_tokenize_str(f"a{ch}b")]
        ours = ["a", "b"] if flags & SPACE else ["a", ch, "b"] if flags & PUNCTUATION else [f"a{ch}b"]
        expect(c, "pieces", ours, pieces)
        found = 1 in words.encode(ch + "@xyz@").ids
        expect(c, "word", bool(flags & WORD), not found)
        if len(parts) > 1 or parts[0] != c:
            continue
        own = kept_class(c)
        for cls, probe in (probes.items() if p.combining[c] else
                           ((k, probes[k]) for k in (min(probes), max(probes)))):
            expect(c, f"order after class {cls}", (ch + probe) if 0 < own < cls else probe + ch,
                   nfd.normalize_str(probe + ch))
            expect(c, f"order before class {cls}", (probe + ch) if own > cls else ch + probe,
                   nfd.normalize_str(ch + probe))
    print(f"{wrong} differences")
    return wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="UnicodeData.txt")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    properties = Properties(read_unicode_data(options.data))
    if options.verify:
        sys.exit(0 if verify(properties) else 1)
    made = tables(properties)
    if options.check:
        if unpack(OUTPUT.read_bytes()) != made:
            sys.exit(f"{OUTPUT} does not hold the tables that this script makes; run it without --check")
        return
    OUTPUT.write_bytes(pack(made))


if __name__ == "__main__":
    main()
