"""The version of strata is the same in all files. CMakeLists.txt and docs/packaging/release read that of meson.build."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def found(pattern, file):
    match = re.search(pattern, (ROOT / file).read_text(), re.M)
    return match[1] if match else f"no version in {file}"


version = found(r"^  version: '([\d.]+)',$", "meson.build")
major, minor, patch = map(int, version.split("."))
CASES = {
    "STRATA_VERSION_STRING is the version of meson.build": (found(r'STRATA_VERSION_STRING "(.*)"', "include/strata/version.hpp"), version),
    "STRATA_VERSION is its number": (found(r"STRATA_VERSION (\d+)", "include/strata/version.hpp"), str(10000 * major + 100 * minor + patch)),
    "docs/changelog.md begins with it": (found(r"^## ([\d.]+)", "docs/changelog.md"), version),
}
print(f"1..{len(CASES)}")
for number, (name, (is_there, wanted)) in enumerate(CASES.items(), 1):
    print(f"{'ok' if is_there == wanted else 'not ok'} {number} - {name}")
    if is_there != wanted:
        print(f"# {is_there} instead of {wanted}")
