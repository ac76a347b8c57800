"""Measures how often a promised error rate is exceeded, over random splits of predicted rows."""
import csv
import math
import random
from bisect import bisect_right

PILOT, TESTS, STEPS = 10, 200, 100_000  # as in tasks/classification/calibration/promise.cpp


def tail(wrong, rows, error):
    """P(Bin(rows, error) <= wrong)."""
    if wrong >= rows:
        return 1.0
    logs = (math.lgamma(rows + 1) - math.lgamma(k + 1) - math.lgamma(rows - k + 1) + k * math.log(error)
            + (rows - k) * math.log1p(-error) for k in range(wrong, -1, -1))
    total = 0.0
    for value in map(math.exp, logs):
        total += value
        if value < 1e-17 * total:
            break
    return min(total, 1.0)


def step_of(probability):
    """Returns the highest s for which the probability is at least s / STEPS."""
    return int(probability * STEPS + 1e-9)


class Curve:
    """Counts the rows whose probability is at least a given step, and the wrong ones among them."""

    def __init__(self, rows):
        rows = sorted(rows, reverse=True)
        self.steps, self.wrong = [-step for step, _ in rows], [0]
        for _, right in rows:
            self.wrong.append(self.wrong[-1] + (not right))

    def at(self, step):
        rows = bisect_right(self.steps, -step)
        return rows, self.wrong[rows]


def thresholds(pilot, max_error):
    steps = sorted((step for step, _ in pilot), reverse=True)
    curve, negative, stride, place = Curve(pilot), [-step for step in steps], max(1, len(steps) // TESTS), 1
    found, first, least = [], 0, 2
    while place <= len(steps):
        step = steps[place - 1]
        rows, wrong = curve.at(step)
        chance = tail((wrong + 1) * (PILOT - 1), (rows + 1) * (PILOT - 1), max_error)
        if chance < least:
            first, least = len(found), chance
        found.append(step)
        covered = bisect_right(negative, -step)
        while place <= covered:
            place += stride
    return found[first:]


def promised(rows, max_error, confidence):
    """Returns the lowest step that keeps the promise, or None. `rows`: (step, right) in the order of the data."""
    curve, found = Curve(row for i, row in enumerate(rows) if i % PILOT), None
    for step in thresholds(rows[::PILOT], max_error):
        count, wrong = curve.at(step)
        if count == 0 or tail(wrong, count, max_error) > 1 - confidence:
            break
        found = step
    return found


def best(curve, max_error):
    """Returns the largest share of the rows among which at most a fraction max_error is wrong."""
    total = len(curve.steps)
    for rows in range(total, 0, -1):
        if (rows == total or curve.steps[rows] != curve.steps[rows - 1]) and curve.wrong[rows] <= max_error * rows:
            return rows / total
    return 0.0


def predictions(path, truth, answer="label"):
    """Returns (step, whether the prediction is right) for each row."""
    with open(path, encoding="utf-8", newline="") as file:
        return [(step_of(float(row["probability"])), row[answer] == row[truth]) for row in csv.DictReader(file)]


def splits(rows, calibration, count, max_error, confidence, seed=0):
    """Returns (splits that break their promise, splits without one, mean coverage, the best threshold's coverage).
    A split makes its promise from `calibration` random rows, and breaks it if too many of the other rows are wrong."""
    choose, broken, none, covered, most = random.Random(seed), 0, 0, 0.0, 0.0
    for _ in range(count):
        mixed = choose.sample(rows, len(rows))
        step, rest = promised(mixed[:calibration], max_error, confidence), Curve(mixed[calibration:])
        most += best(rest, max_error) / count
        if step is None:
            none += 1
            continue
        automatic, wrong = rest.at(step)
        broken += wrong > max_error * automatic
        covered += automatic / len(rest.steps) / count
    return broken, none, covered, most
