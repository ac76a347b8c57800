"""Generated tables in pages, between `<!-- table: NAME -->` and `<!-- end of table -->`."""
import re

BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def table(head, rows, right=()):
    """Returns a Markdown table. Columns whose names are in `right` are aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---:" if name in right else "---" for name in head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def filled(text, tables, page):
    """Returns the page's text with these tables in their places. Exits if a place or a table is without the other."""
    names = [name for _, name, _ in BLOCK.findall(text)]
    if sorted(names) != sorted(tables):
        raise SystemExit(f"draw: error: {page} has places for {', '.join(names) or 'no tables'}; "
                         f"there are {', '.join(tables)}")
    return BLOCK.sub(lambda match: f"{match[1]}\n{tables[match[2]]}\n\n{match[3]}", text)
