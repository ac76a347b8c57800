#!/usr/bin/env python3
"""Measures how much accuracy amounts add as inputs of the head or of the linear model of words.

usage: head_columns.py       needs torch, transformers and scikit-learn, FINETUNE_SHARED and FINETUNE_MINILM

The head is a logistic regression of frozen features (the mean of all tokens) and amounts. The linear model is an SVM
of words, characters and amounts. The two are mixed as in `train --recipe quick`, with weights chosen on 1,500 other
rows. Prints the accuracy of each on 4,000 test rows of Toronto, for accounts, and for debits and credits (the amount's
sign is random, and part of the label).
"""
import csv
import os
import random
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from transformers import AutoModel, AutoTokenizer

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("FINETUNE_SHARED") or ROOT.parent / "shared")
MINILM = Path(os.environ.get("FINETUNE_MINILM") or ROOT / ".cache/all-minilm-l6-v2")
WEIGHTS = list(product((0.25, 0.5, 1, 2), (0.5, 1, 2, 4, 8)))
FEATURE_SCALE, SIDE_SCALE = 10, 0.5  # normalised features are smaller than standardised amounts, n-grams smaller still


def rows_of(name, count):
    with open(SHARED / f"data/toronto/{name}.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    random.Random(1).shuffle(rows)
    return rows[:count]


def features_of(rows):
    tokenizer, model = AutoTokenizer.from_pretrained(MINILM), AutoModel.from_pretrained(MINILM).eval()
    out = []
    with torch.no_grad():
        for first in range(0, len(rows), 64):
            texts = [row["text"] for row in rows[first:first + 64]]
            batch = tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt")
            mask = batch["attention_mask"][..., None]
            states = (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
            out.append(torch.nn.functional.normalize(states, dim=1).numpy())
    return FEATURE_SCALE * np.concatenate(out)


def amounts_of(rows):
    amounts = np.array([float(row["amount"].replace(",", "")) for row in rows])
    return np.stack([np.sign(amounts), np.sign(amounts) * np.log1p(np.abs(amounts)), np.log1p(np.abs(amounts))], 1)


def log_probabilities(scores):
    scores = scores - scores.max(1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


def ngrams_of(parts):
    texts = [[row["text"].lower() for row in rows] for rows in parts]
    makers = [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
              TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2)]
    for maker in makers:
        maker.fit(texts[0])
    return [hstack([maker.transform(each) for maker in makers]).tocsr() for each in texts]


def measure(name, parts, features, label, signs):
    draw, amounts, labels = np.random.RandomState(0), [], []
    for rows in parts:
        each, names = amounts_of(rows), [row[label] for row in rows]
        if signs:
            each[draw.rand(len(rows)) < 0.5, :2] *= -1
            names = [f"{of} {'debit' if sign < 0 else 'credit'}" for of, sign in zip(names, each[:, 0])]
        amounts.append(each)
        labels.append(names)
    center, scale = amounts[0].mean(0), amounts[0].std(0) + 1e-9
    amounts = [(each - center) / scale for each in amounts]
    number = {each: i for i, each in enumerate(sorted(set(labels[0])))}
    targets = [np.array([number.get(each, -1) for each in names]) for names in labels]
    ngrams = ngrams_of(parts)

    def scores(model, inputs):
        model.fit(inputs[0], targets[0])
        return [model.decision_function(each) for each in inputs[1:]]
    heads = {"": scores(LogisticRegression(max_iter=60), features),
             " and amount": scores(LogisticRegression(max_iter=60),
                                   [np.hstack(each) for each in zip(features, amounts)])}
    linear = {"": scores(LinearSVC(C=0.5, max_iter=300), ngrams),
              " and amount": scores(LinearSVC(C=0.5, max_iter=300),
                                    [hstack([each, csr_matrix(SIDE_SCALE * side)]).tocsr()
                                     for each, side in zip(ngrams, amounts)])}
    known = targets[1] >= 0
    for (head, (head_dev, head_test)), (line, (line_dev, line_test)) in product(heads.items(), linear.items()):
        def loss(weights):
            mixed = log_probabilities(weights[0] * head_dev + weights[1] * line_dev)[known]
            return -mixed[np.arange(len(mixed)), targets[1][known]].mean()
        a, b = min(WEIGHTS, key=loss)
        right = [100 * (each.argmax(1) == targets[2]).mean() for each in (head_test, line_test,
                                                                         a * head_test + b * line_test)]
        print(f"{name}: head of text{head} {right[0]:.1f}, words{line} {right[1]:.1f}, mixed {right[2]:.1f}", flush=True)


def main():
    torch.set_num_threads(1)
    parts = [rows_of("train", 4000), rows_of("dev", 1500), rows_of("test", 4000)]
    features = [features_of(rows) for rows in parts]
    measure("accounts", parts, features, "gl_category", False)
    measure("debits and credits", parts, features, "category", True)


if __name__ == "__main__":
    main()
