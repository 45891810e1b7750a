#!/usr/bin/env python3
"""Compares the includes of headers with the rooms of docs/design.md, and the umbrella headers with the folders."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/strata"
# This folder precedes include/ if GPUs are emulated.
EMULATED = ROOT / "include/strata_emulated_cuda/strata"
INCLUDE = re.compile(r"^\s*(?:/\*.*?\*/\s*)*#\s*include\s*([<\"][^>\"]+[>\"]|\w+)", re.M)
OF_LIBRARIES = re.compile(r"<(nlohmann|boost|z(lib|ip)\.h|hdf5|png|jpeg|protozero|openssl|spdlog|fmt|uc[ps]|gloo|mpi)")
# Headers that an umbrella leaves out, and why. Headers that need a library (`// needs:`) are left out by themselves.
LEFT_OUT = {
    "strata.hpp": {
        "optimizers/ema.hpp": "few trainings average their weights",
    },
    "data.hpp": {  # most programs read no TFRecord, so that those that do include it
        "data/formats/file_list.hpp": "of TFRecord",
        "data/formats/tf_record.hpp": "of TFRecord",
        "data/formats/tf_record_element.hpp": "of TFRecord",
        "data/formats/tf_record_reader.hpp": "of TFRecord",
        "data/formats/tf_record_writer.hpp": "of TFRecord",
    },
}


def read_headers():
    """{file: [its includes, as written]}"""
    files = {f.relative_to(folder).as_posix(): f for folder in (HEADERS, EMULATED) for f in sorted(folder.rglob("*")) if f.suffix in (".hpp", ".ipp", ".cuh")}
    return {name: INCLUDE.findall(file.read_text(encoding="utf-8")) for name, file in files.items()}


def read_rooms():
    """{folder or header: level}, from the block ```rooms of docs/design.md."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    block = re.search(r"^```rooms\n(.*?)^```", text, re.M | re.S)
    return {room: level for level, line in enumerate(block[1].splitlines() if block else []) for room in line.split()}


def room_of(header, places):
    """The room of a header: the nearest entry of the list, which is the header itself, its folder, or a parent folder. An .ipp file
    belongs to the room of its header."""
    around = [re.sub(r"\.ipp$", ".hpp", header), *(p.as_posix() for p in Path(header).parents)]
    return next((place for place in around if place in places), None)


def circles(headers):
    """Each cycle of includes once, as a list of headers that begins with the first in alphabetical order."""
    found, done, path = set(), set(), []

    def visit(header):
        if header in path:
            circle = path[path.index(header):]
            first = circle.index(min(circle))
            found.add(tuple(circle[first:] + circle[:first]))
        elif header not in done:
            path.append(header)
            for included in headers.get(header, []):
                visit(included)
            path.pop()
            done.add(header)

    for header in headers:
        visit(header)
    return sorted(map(list, found))


def reachable(header, headers):
    seen, left = set(), [header]
    while left:
        for included in headers.get(left.pop(), []):
            if included not in seen:
                seen.add(included)
                left.append(included)
    return seen


class Results:
    def __init__(self):
        self.all = []

    def add(self, what, complaints):
        self.all.append(not complaints)
        print(f"{'not ok' if complaints else 'ok'} {len(self.all)} - {what}")
        for complaint in complaints:
            print(f"# {complaint}")


def main():
    written, places, results = read_headers(), read_rooms(), Results()
    headers = {name: [i[len("<strata/"):-1] for i in included if i.startswith("<strata/")] for name, included in written.items()}
    others = [f"{name} includes {i}" for name, included in written.items() for i in included if i[0] != "<"]
    results.add("headers of strata are included as <strata/...>", others)
    results.add("docs/design.md lists the rooms in a block ```rooms", [] if places else ["there is none"])

    rooms = {header: room_of(header, places) for header in headers}
    results.add("each header lies in a room of that list", [f"{header} does not" for header, room in rooms.items() if room is None])
    empty = [f"{room} does not exist" for room in places if not (HEADERS / room).exists()]
    results.add("each room of the list exists", empty)

    arrows = [(a, b) for a, included in headers.items() for b in included]
    results.add("each include names a header that exists", [f"{a} includes {b}, which does not" for a, b in arrows if b not in headers])

    targets = {b for _, b in arrows}
    results.add("each .ipp file is included", [f"{h} is not" for h in headers if h.endswith(".ipp") and h not in targets])

    known = [(a, b) for a, b in arrows if rooms.get(a) and rooms.get(b)]
    upward = {f"{a} -> {b}" for a, b in known if rooms[a] != rooms[b] and places[rooms[b]] >= places[rooms[a]]}
    results.add("no include goes down the list, or to another room of the same line", sorted(upward))

    found = circles(headers)
    results.add("no circle of includes", [" -> ".join([*c, c[0]]) for c in found])
    needs = {f.relative_to(HEADERS).as_posix() for f in HEADERS.rglob("*.hpp") if re.search(r"^// needs:", "\n".join(f.read_text().split("\n", 10)[:10]), re.M)}
    public = {
        "strata.hpp": {h for h in headers if h.split("/")[0] in ("layers", "initializers", "losses", "metrics", "optimizers") and h.count("/") == 1},
        "data.hpp": {h for h in headers if h.startswith("data/") and not h.startswith("data/core/")},
    }
    for umbrella, expected in public.items():
        left_out = LEFT_OUT[umbrella]
        there = set(headers[umbrella]) | reachable(umbrella, headers)
        missing = [f"{h} is not in {umbrella}: include it there, or name it in LEFT_OUT" for h in sorted(expected - there - needs - left_out.keys())]
        listed = [f"{h} is in {umbrella} and in LEFT_OUT, or exists no more" for h in left_out if h in there or h not in headers]
        listed += [f"{h} is in {umbrella}, though it needs a library" for h in sorted(needs & there)]
        results.add(f"{umbrella} has the headers of its folders", missing + listed)

    behind = {"strata.hpp", *reachable("strata.hpp", headers)}
    libraries = [f"{h} includes {i}" for h in sorted(behind & written.keys()) for i in written[h] if OF_LIBRARIES.match(i)]
    results.add("strata.hpp needs no library", libraries)

    print(f"1..{len(results.all)}")
    return not all(results.all)


sys.exit(main())
