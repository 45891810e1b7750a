"""Pages: no link is broken, the files that they name exist, and each decision is in the list of decisions."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs/decisions"
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
CODE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"`((?:include|tests|examples|bench|docs)/[\w./]+)")


def anchors(page):
    """The ids of headings on the usual hosts: lower case, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def wrong_links(page):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            yield link


def missing_files(page):
    for name in FILE.findall(page.read_text()):
        if not (ROOT / name.rstrip(".")).exists() and not (ROOT / f"{name}.cpp").exists():
            yield name


def missing_headers():
    """The headers that the table of docs/features.md names and that do not exist."""
    for row in re.findall(r"^\|.*\.hpp`.*$", (ROOT / "docs/features.md").read_text(), re.M):
        folder = ""
        for name in re.findall(r"`([\w/]+\.hpp)`", row.split("|")[2]):
            folder = name.rpartition("/")[0] or folder
            header = f"{folder}/{name.rpartition('/')[2]}".lstrip("/")
            if "NAME" not in name and not (ROOT / "include/strata" / header).exists():
                yield header


def unlisted_decisions():
    listed = {(DECISIONS / link).resolve() for link in LINK.findall((DECISIONS / "README.md").read_text())}
    for page in sorted(DECISIONS.glob("*/*.md")):
        if page not in listed:
            yield str(page.relative_to(ROOT))


CASES = {
    "links lead somewhere": [f"{page.relative_to(ROOT)}: {link}" for page in PAGES for link in wrong_links(page)],
    "files that pages name exist": [f"{page.relative_to(ROOT)}: {name}" for page in PAGES for name in missing_files(page)],
    "docs/decisions/README.md lists each decision": list(unlisted_decisions()),
    "headers of the table in docs/features.md exist": list(missing_headers()),
    "README.md is a first page, of 90 lines at most": [f"{lines} lines"] if (lines := len((ROOT / "README.md").read_text().splitlines())) > 90 else [],
}
print(f"1..{len(CASES)}")
for number, (name, faults) in enumerate(CASES.items(), 1):
    print(f"{'not ok' if faults else 'ok'} {number} - {name}")
    for fault in faults:
        print(f"  {fault}")
