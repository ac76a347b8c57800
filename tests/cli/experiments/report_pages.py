"""Parses reports for tests: elements and tables, checks for every page, and runs to report."""
import math
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN  # noqa: E402
from harness import succeed  # noqa: E402

DATA = "golden/trajectory-classification-train.csv"
VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """Collects elements and tables by caption, and checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.tables, self.figures = [], [], {}, []
        self.caption = self.rows = None
        self.text_of = {}
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "figure":
            self.figures.append(Counter())
        elif "figure" in self.open:
            self.figures[-1][f"{self.open[-1]} {tag}"] += 1
        if tag == "table":
            self.rows, self.caption = [], ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):  # a cell's title has all digits of its number
            self.whole = dict(attributes).get("title")
            self.rows[-1].append(self.whole or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"
        if tag == "table":
            self.tables.setdefault(self.caption, []).append(self.rows)

    def handle_data(self, data):
        if not self.open:
            return
        if self.open[-1] == "caption":
            self.caption += data
        elif "table" in self.open and ("td" in self.open or "th" in self.open):
            if not self.whole:
                self.rows[-1][-1] += data
            elif data:
                self.check_digits(data, self.whole)

    @staticmethod
    def check_digits(shown, whole):
        """What is shown is the whole number (or a mean and a deviation) in few digits."""
        for short, long in zip(shown.split(" ± "), whole.split(" ± ")):
            digits = short.lstrip("-0.").replace(".", "").partition("e")[0]
            assert len(digits) <= 4 or short.isdigit(), (shown, whole)
            assert math.isclose(float(short), float(long), rel_tol=6e-3, abs_tol=6e-4), (shown, whole)

    def table(self, caption, which=0):
        return self.tables[caption][which][1:]


def in_words(date):
    """The minute of a date in run.json as a page shows it."""
    return re.sub(r"^(.{10})T(.{5}):..Z$", r"\1 \2 UTC", date)


def report(directory, *runs):
    """The report page of these runs, after the checks for every page."""
    out = directory / "page.html"
    result = succeed("report", *runs, "--output", out, "--overwrite")
    assert str(out) in result.out and len(result.out.splitlines()) == 1, result
    data = out.read_bytes()
    again = succeed("report", *runs, "--output", "-").out
    assert again.encode() == data, "the same bytes for the same runs"
    text = data.decode()
    page = Page(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200e\u200f]", text)
    names = Counter(tag for tag, _ in page.elements)
    assert not {"script", "img", "link", "iframe", "object", "embed", "base", "form"} & set(names), names
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("src", "style", "xlink:href", "action"), (tag, name)
            assert name != "href" or value.startswith("#"), (tag, value)
    style = text[text.index("<style>"):text.index("</style>")]
    assert "url(" not in style and "@import" not in style and "prefers-color-scheme: dark" in style
    assert "default-src 'none'" in text
    assert page.figures, "pictures"
    head = text[text.index("<h1>"):text.index("</h1>")]
    assert text.count(head[4:]) == 1 or len(head) < 20, "the verdict is said once"
    for figure in page.figures:
        assert figure["svg title"] == 1 and figure["svg desc"] == 1, figure
        assert sum(count for name, count in figure.items() if name.endswith(" table")) == 1, figure
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])), levels
    for rows in (rows for tables in page.tables.values() for rows in tables):
        assert len({len(row) for row in rows}) == 1, rows[:2]
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    return page, text


def train(out, *more, model=MODEL):
    succeed("train", "--model", model, "--quiet", "--output", out, *more)
    return out


def labelled(out, *more):
    return train(out, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--max-steps", 45, "--eval-every",
                 15, "--lr", "3e-3", *more)
