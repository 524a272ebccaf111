"""The release matrix: from test reports to result files to a table.

    python -m tests.release_matrix record REPORT.xml RESULT.json SESSION VARIANT
    python -m tests.release_matrix table [--check]
    python -m tests.release_matrix stale

The first form runs in the environment that was tested and sums its JUnit report
up, with the versions of what is installed there. The second needs nothing of
that: it writes the table of all files in results/ into README.md, or checks
that it stands there. The third names the sessions whose results are older than
the code and tests that they ran.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from packaging.version import Version

from graft.project import Project
from graft.releases import Release
from graft.releases import Table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
README = ROOT / "README.md"
BEGIN = "<!-- made by `nox -s matrix`: do not edit -->\n"
END = "<!-- end of the table -->\n"

PACKAGES = ("tensorflow", "jax", "torch", "h5py", "numpy", "ml_dtypes")
ROUTES = {
    "arrays": "build and run",
    "h5": "`.h5`",
    "legacy_weights": "weights from `.h5`",
    "weights_h5": "`.weights.h5`",
    "keras": "`.keras`",
}
LAYER_TEST = re.compile(
    r"test_(?:round_trip|output_dtype)_([A-Za-z0-9]+)_bfloat16"
    r"(?:_(h5|legacy_weights|weights_h5|keras|arrays))?"
)
READER_TEST = re.compile(r"test_opens\[(.+)\]")
# Which tests make up a column: test classes, or modules of tests/.
COLUMNS = {
    "models": (
        "LargeModelsTest",
        "ModelRoundTripTest",
        "SpecialValuesTest",
        "CrossPrecisionTest",
        "CompiledModelTest",
        "DerivedModelsTest",
    ),
    "optimizers": (
        "OptimizerRoundTripTest",
        "LegacyOptimizerTest",
        "LostStateTest",
        "TensorFlowNamespaceTest",
    ),
    "stock files": ("test_stock_files",),
    "issue": ("test_issue",),
}

BROKEN = ("failure", "error")
FAILED = "failed"
OPENED = {"passed": "yes", FAILED: "**no**", "skipped": "-"}


@dataclass(frozen=True)
class Case:
    """One test of a JUnit report."""

    group: str
    name: str
    outcome: str

    @classmethod
    def of(cls, element: ElementTree.Element) -> Case:
        group = element.get("classname", "").rpartition(".")[2]
        return cls(group, element.get("name", ""), outcome(element))


def outcome(element: ElementTree.Element) -> str:
    skipped = element.find("skipped")
    if skipped is not None:
        is_fault = skipped.get("type") == "pytest.xfail"
        return "known fault" if is_fault else "skipped"
    broken = any(element.find(kind) is not None for kind in BROKEN)
    return FAILED if broken else "passed"


def newest_patches(releases: Iterable[Release]) -> list[Release]:
    """The newest release of each minor version."""
    newest: dict[tuple, Release] = {}
    for release in sorted(releases, key=lambda r: Version(r.version)):
        newest[release.name, Version(release.version).release[:2]] = release
    return list(newest.values())


def digest(name: str, version: str) -> str:
    """Stands for what the fork for a release is, and for its tests."""
    project = Project()
    release = project.table.release(f"{name}=={version}")
    changes = project.changes(release, project.files(release), tests=True)
    dump = json.dumps({k: v.decode() for k, v in sorted(changes.items())})
    return hashlib.sha256(dump.encode()).hexdigest()[:16]


def stale() -> Iterator[str]:
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        if result["code"] != digest(*result["release"].split("==")):
            yield result["session"]


def record(report: Path, result: Path, session: str, variant: str) -> None:
    """Sums a report up in a file."""
    root = ElementTree.parse(report).getroot()
    cases = [Case.of(element) for element in root.iter("testcase")]
    name = os.environ["KERAS_MODULE"]
    upstream, _, local = importlib.metadata.version(name).partition("+")
    data = {
        "release": f"{name}=={upstream}",
        "fork": bool(local),
        "variant": variant,
        "session": session,
        "code": digest(name, upstream),
        "python": platform.python_version(),
        "packages": dict(installed()),
        "tests": collections.Counter(case.outcome for case in cases),
        "failed": [
            f"{c.group}::{c.name}" for c in cases if c.outcome == FAILED
        ],
        **(readers(cases) or columns(cases)),
    }
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def readers(cases: Iterable[Case]) -> dict[str, dict[str, str]]:
    """How it went with each reader of an interop session."""
    found = {
        match[1]: case.outcome
        for case in cases
        if (match := READER_TEST.fullmatch(case.name))
    }
    return {"readers": found} if found else {}


def columns(cases: list[Case]) -> dict[str, object]:
    shares = {column: share(cases, column) for column in COLUMNS}
    return {"layers": layers(cases), **shares}


def installed() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        try:
            yield package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass


def share(cases: Iterable[Case], column: str) -> list[int]:
    """How many tests of a column passed, and how many there are for it."""
    found = [case.outcome for case in cases if case.group in COLUMNS[column]]
    return [found.count("passed"), len(found) - found.count("skipped")]


def layers(cases: Iterable[Case]) -> dict[str, int]:
    """How many layers pass in bfloat16: by each route, and by all of them."""
    outcomes = collections.defaultdict(dict)
    for case in cases:
        match = LAYER_TEST.fullmatch(case.name)
        if match and case.group == "LayerRoundTripTest":
            outcomes[match[1]][match[2]] = case.outcome
    counts = {
        route: sum(o.get(route) == "passed" for o in outcomes.values())
        for route in ROUTES
    }
    whole = [set(o.values()) - {"skipped"} for o in outcomes.values()]
    return {
        **counts,
        "ok": sum(found == {"passed"} for found in whole),
        "total": len(outcomes),
    }


def tables() -> str:
    """The Markdown tables of all results."""
    files = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    results = sorted(files, key=order)
    return f"{release_table(results)}\n{interop_table(results)}"


def markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def release_table(results: list[dict]) -> str:
    head = [
        "release",
        "with",
        "layers",
        *ROUTES.values(),
        *COLUMNS,
        "all tests",
    ]
    rows = [row(result) for result in results if "layers" in result]
    return markdown(head, [*rows, *missing(results, len(head))])


def interop_table(results: list[dict]) -> str:
    """A row for each writer, a column for each reader."""
    found = [result for result in results if "readers" in result]
    names = sorted({name for result in found for name in result["readers"]})
    head = ["written by the fork, opened by", *(spaced(name) for name in names)]
    rows = [
        [spaced(result["release"])]
        + [OPENED[result["readers"].get(name, "skipped")] for name in names]
        for result in found
    ]
    return markdown(head, rows)


def spaced(release: str) -> str:
    return (
        release.replace("==", " ")
        .replace("stock-", "stock ")
        .replace("fork-", "fork ")
    )


def missing(results: list[dict], width: int) -> Iterator[list[str]]:
    """Rows for the releases that could not be run."""
    found = {result["release"] for result in results if result["fork"]}
    for release in map(str, newest_patches(Table())):
        if release not in found:
            yield [spaced(release), "not run", *[""] * (width - 2)]


def order(result: dict) -> tuple:
    name, _, version = result["release"].partition("==")
    numbers = tuple(int(part) for part in version.split("."))
    return name != "keras", numbers, result["variant"], result["fork"]


def row(result: dict) -> list[str]:
    found = result["layers"]
    kind = "fork" if result["fork"] else "stock"
    return [
        f"{spaced(result['release'])}, {kind}",
        surroundings(result),
        f"**{found['ok']}** of {found['total']}",
        *(str(found[route] or "-") for route in ROUTES),
        *(of(*result[column]) for column in COLUMNS),
        tests(result["tests"]),
    ]


def surroundings(result: dict) -> str:
    shown = {"Python": result["python"], **result["packages"]}
    if not result["variant"]:
        shown = {k: shown[k] for k in ("Python", "tensorflow")}
    names = {"tensorflow": "TF", "jax": "JAX", "numpy": "NumPy"}
    return ", ".join(f"{names.get(k, k)} {v}" for k, v in shown.items())


def of(passed: int, total: int) -> str:
    return f"{passed}" if passed == total else f"{passed} of {total}"


def tests(outcomes: dict[str, int]) -> str:
    kinds = ("passed", "failed", "known fault", "skipped")
    return ", ".join(f"{outcomes[k]} {k}" for k in kinds if outcomes.get(k))


def update(check: bool) -> None:
    """Writes the table into the README, or checks that it is there."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    updated = f"{before}{BEGIN}\n{tables()}\n{END}{after}"
    if check and updated != text:
        sys.exit(
            "README.md does not show what is in results/. "
            "`python -m tests.release_matrix table` writes it."
        )
    README.write_text(updated, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("report", type=Path)
    recorder.add_argument("result", type=Path)
    recorder.add_argument("session")
    recorder.add_argument("variant")
    commands.add_parser("stale")
    commands.add_parser("table").add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "record":
        del arguments.command
        record(**vars(arguments))
    elif arguments.command == "stale":
        print(*stale(), sep="\n")
    else:
        update(arguments.check)


if __name__ == "__main__":
    main()
