#!/usr/bin/env python3
"""The names directly in namespace strata, held against tests/tree/names.txt. With --write, writes that list anew.

Lines are read as clang-format lays them out: what stands at column 0 in a namespace begins a declaration, or ends one."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/tree/names.txt"
MOST = 400
TEXT = re.compile(r'"(?:\\.|[^"\\])*"|(?<!\d)\'(?:\\.|[^\'\\])\'|//.*')
NAMESPACE = re.compile(r"(inline )?namespace ([\w:]*) ?\{")
NO_DECLARATION = re.compile(r"[}#)]|namespace\b|using namespace\b|template\b|extern template\b|static_assert\b|$")
TYPE = re.compile(r"(?:struct|class|union|concept|using|enum(?: class| struct)?) (?:\[\[.*?\]\] |alignas\(.*?\) )?([\w:]+)")


def name_of(line):
    """The name that a line declares: that of a type, or what stands in front of the first (, {, =, ; or [ outside of <>."""
    line = re.sub(r"\[\[.*?\]\]\s*", "", line)
    if match := TYPE.match(line):
        return match[1]
    while line != (line := re.sub(r"<[^<>]*>", "", line)):
        pass
    match = re.match(r"(?:explicit\((?:true|false)\) )?[^({=;[]*?([\w:]+)\s*(?:[({=;[]|$)", line)
    return match[1] if match else ""


def names_of(text):
    """The names that a header declares directly in strata."""
    found, opened, depth = set(), [], 0  # opened: the namespaces, with the depth of braces in each
    for line in text.splitlines():
        line = TEXT.sub('""', line).rstrip()
        match = NAMESPACE.match(line)
        if match:
            opened.append((match[2], depth + 1))
        elif [name for name, _ in opened] == ["strata"] and depth == 1 and not line.startswith(" "):
            line = re.sub(r"^template <[^{}]*> (?=struct|class)", "", line)
            if not NO_DECLARATION.match(line) and "operator" not in line and "::" not in (name := name_of(line)):
                found.add(name)
        depth += line.count("{") - line.count("}")
        while opened and depth < opened[-1][1]:
            opened.pop()
    return found - {""}


def main():
    names = {}
    for header in sorted((ROOT / "include").rglob("*.hpp")):
        for name in names_of(header.read_text(encoding="utf-8")):
            names.setdefault(name, header.relative_to(ROOT / "include"))
    if sys.argv[1:] == ["--write"]:
        LIST.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
        return 0
    listed = LIST.read_text(encoding="utf-8").split()
    complaints = [f"{names[name]} declares {name}, which the list does not have: only what programs write stands in strata, the rest in core or detail"
                  for name in sorted(names.keys() - set(listed))]
    complaints += [f"{name} is in the list, and no header declares it" for name in sorted(set(listed) - names.keys())]
    complaints += ["the list is not sorted"] * (listed != sorted(set(listed)))
    print("1..2")
    print("not ok 1" if complaints else "ok 1", "- the names in strata are those of tests/tree/names.txt")
    for complaint in complaints:
        print(f"# {complaint}")
    few = len(listed) <= MOST
    print("ok 2" if few else "not ok 2", f"- they are at most {MOST}: {len(listed)}")
    return bool(complaints) or not few


sys.exit(main())
