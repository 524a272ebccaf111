"""Measures how many layers survive each file format, and renders the table.

    python tests/layer_table.py --module MAPPED_TEST_FILE --json out.json
    python tests/layer_table.py --render before.json after.json

The first form takes the table of layers from `bfloat16_layers_test.py`, as
`graft tests` maps it onto the Keras that this Python has, stock or forked, and
runs every layer. The second needs no Keras; rows are named after the files.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import time
import types
from pathlib import Path

COLUMNS = {
    "build": "build",
    "dtype": "output dtype",
    "h5": "`.h5`",
    "legacy_weights": "weights in `.h5`",
    "weights_h5": "`.weights.h5`",
    "keras": "`.keras`",
    "arrays": "arrays",
}


def load_module(path: Path) -> types.ModuleType:
    """Imports a mapped test file, and what it shares with others beside it.

    A stock Keras lacks that helper module, so its package is extended by the
    folder of the test file.
    """
    helper = re.search(
        r"^from (\S+)\.bfloat16_test_utils import", path.read_text(), re.M
    )
    if helper:
        package = importlib.import_module(helper[1])
        package.__path__.append(str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location("mapped_layers_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reason(error: Exception) -> str:
    """The error in one line, without terminal colours and addresses."""
    text = re.sub(r"\x1b\[[0-9;]*m|0x[0-9a-f]+", "", str(error))
    return f"{type(error).__name__}: {' '.join(text.split())}"[:300]


def attempt(action, *arguments) -> str:
    """The reason why `action` fails, or an empty string."""
    try:
        action(*arguments)
    except Exception as error:
        return reason(error)
    return ""


def measure_layer(tests: types.ModuleType, name: str, policy: str) -> dict:
    """Maps each step to the reason why it fails, or an empty string."""
    try:
        round_trip = tests.RoundTrip(name, policy)
    except Exception as error:
        return {"build": tests.limit_of(name, policy) or reason(error)}
    return {
        "build": "",
        "dtype": attempt(round_trip.check_output_dtype),
        **{route: attempt(round_trip.check, route) for route in tests.ROUTES},
    }


def measure(tests: types.ModuleType, policies: list[str]) -> dict:
    tests.setUpModule()
    start = time.perf_counter()
    names = sorted(set(tests.LAYERS) & set(tests.PUBLIC_LAYERS))
    results = {
        policy: {name: measure_layer(tests, name, policy) for name in names}
        for policy in policies or tests.COMPUTE_DTYPES
    }
    return {
        "package": tests.layers.__name__.split(".")[0],
        "version": tests.keras.__version__,
        "backend": tests.BACKEND,
        "columns": ["build", "dtype", *tests.ROUTES],
        "seconds": round(time.perf_counter() - start),
        "results": results,
    }


def title(report: dict) -> str:
    return f"{report['package']} {report['version']} ({report['backend']})"


def count(outcomes: dict, column: str) -> int:
    return sum(outcome.get(column) == "" for outcome in outcomes.values())


def row(cells: list) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def summary_row(label: str, report: dict, policy: str) -> str:
    outcomes = report["results"][policy]
    counts = [
        count(outcomes, column) if column in report["columns"] else "-"
        for column in COLUMNS
    ]
    everything = sum(
        all(outcome.get(column) == "" for column in report["columns"])
        for outcome in outcomes.values()
    )
    return row(
        [label, title(report), policy, len(outcomes), *counts, everything]
    )


def render(reports: dict[str, dict], detail: bool) -> str:
    """A Markdown table with a row for each report and policy."""
    heads = ["", "release", "policy", "layers", *COLUMNS.values(), "everything"]
    lines = [row(heads), row(["---"] * len(heads))]
    for policy in next(iter(reports.values()))["results"]:
        for label, report in reports.items():
            if policy in report["results"]:
                lines.append(summary_row(label, report, policy))
    if detail:
        for label, report in reports.items():
            lines += [
                "",
                f"### {title(report)}, {label}",
                "",
                *failures(report),
            ]
    return "\n".join(lines) + "\n"


def failures(report: dict) -> list[str]:
    """One line for each way in which a layer fails, routes joined."""
    lines = [row(["layer", "policy", "step", "reason"]), row(["---"] * 4)]
    for policy, outcomes in report["results"].items():
        for name, outcome in outcomes.items():
            steps: dict[str, list[str]] = {}
            for step, text in outcome.items():
                if text:
                    steps.setdefault(text.replace("|", "\\|"), []).append(step)
            for text, columns in steps.items():
                lines.append(row([name, policy, ", ".join(columns), text]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", type=Path, help="mapped test file to run")
    parser.add_argument("--policy", action="append", help="run only this one")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("--render", type=Path, nargs="+", metavar="JSON")
    parser.add_argument("--detail", action="store_true", help="list failures")
    options = parser.parse_args()
    if options.render:
        reports = {
            path.stem: json.loads(path.read_text()) for path in options.render
        }
    else:
        report = measure(load_module(options.module), options.policy)
        reports = {"measured": report}
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(render(reports, options.detail), end="")


if __name__ == "__main__":
    main()
