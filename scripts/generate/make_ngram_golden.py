#!/usr/bin/env python3
"""Writes tests/unit/tasks/ngram_golden.h: TF-IDF values of a few texts by scikit-learn.

Needs scikit-learn (version 1.9.1 wrote the present file): scripts/generate/make_ngram_golden.py > FILE
"""
import textwrap

from sklearn import __version__
from sklearn.feature_extraction.text import TfidfVectorizer

TRAINED = ["AMAZON.CA 200276012 Book on ENGAGEMENT", "rona # 55140 brackets for blinds, for blinds etc.",
           "Café CAFÉ à la crème - café", "book  book\tof a BOOK", "Ünïcode Straße ДОМ дом 東京 x y"]
OTHERS = ["a café book of the rona", "!?", "дом ЁЛКА"]


def main():
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w\w+\b")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    words.fit(TRAINED)
    characters.fit(TRAINED)
    features = len(words.vocabulary_) + len(characters.vocabulary_)
    print(f"// TF-IDF of a few texts by scikit-learn {__version__}: made by scripts/generate/make_ngram_golden.py.")
    print("#pragma once\n")
    print("#include <string_view>\n#include <vector>\n")
    print("namespace finetune::test {\n")
    print("struct GoldenText {\n  std::string_view text;\n  // Ascending; those of word n-grams before those of characters.\n"
          "  std::vector<float> words, characters;\n};\n")
    print(f"constexpr long kGoldenFeatures = {features};")
    print(f"constexpr size_t kGoldenTrained = {len(TRAINED)};  // the others are not counted\n")
    print("// clang-format off\ninline const std::vector<GoldenText> kGoldenTexts = {")
    for text in TRAINED + OTHERS:
        quoted = text.replace("\t", "\\t")
        lists = []
        for vectorizer in (words, characters):
            values = sorted(vectorizer.transform([text]).data)
            numbers = ", ".join(f"{value:.6f}f" for value in values)
            lists.append("{" + textwrap.fill(numbers, 100, subsequent_indent=" " * 6) + "}")
        print(f'    {{"{quoted}",\n     {lists[0]},\n     {lists[1]}}},')
    print("};\n// clang-format on\n\n}  // namespace finetune::test")


if __name__ == "__main__":
    main()
