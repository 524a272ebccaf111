"""Upstream's own tests, without the change and with it.

    python -m tests.upstream_suites CHECKOUT [--python PYTHON] [SUITE ...]

CHECKOUT is a git clone of keras-team/keras or keras-team/tf-keras. It is cloned
twice into build/upstream, `graft apply` changes one of the clones, and the test
files that upstream has in each SUITE (a folder or a file; by default all of
SUITES) run in both. It prints how many tests passed, failed and were skipped,
then each test whose outcome differs, and fails if one passed only without the
change. The reports and logs stay in build/upstream.

PYTHON, by default the one that runs this, needs TensorFlow, pytest,
pytest-xdist and pytest-timeout. Without jax, torch, grain, tf_keras, scipy,
pandas, pillow, tensorboard, dm-tree and orbax-checkpoint more tests are skipped
or fail, on both sides. On two cores it takes some hours.
"""

from __future__ import annotations

import argparse
import collections
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

from graft import pull_request
from graft.checkout import detect
from graft.project import Project
from graft.project import write
from graft.releases import Target

SIDES = ("before", "after")
OUTCOMES = ("passed", "failed", "skipped")
# They want a cluster, and wait for it for minutes each.
LEFT_OUT = "not optimizer_pss_test and not DistributedTrainingTest"
# Below the package; one pytest process for each and for each side.
SUITES = {
    "tf_keras": (
        "saving",
        "initializers",
        "optimizers",
        "mixed_precision",
        "engine/base_layer_test.py",
        "engine/base_layer_utils_test.py",
        "engine/base_preprocessing_layer_test.py",
        "engine/functional_test.py",
        "engine/input_layer_test.py",
        "engine/keras_tensor_test.py",
        "engine/sequential_test.py",
        "engine/training_test.py",
        "models",
        "layers/activation",
        "layers/attention",
        "layers/core",
        "layers/normalization",
        "layers/pooling",
        "layers/preprocessing",
        "layers/regularization",
        "layers/reshaping",
        "layers/rnn",
        "layers/serialization_test.py",
        "backend_test.py",
        "backend_config_test.py",
        "callbacks_test.py",
    ),
    "keras": (
        "src/saving",
        "src/legacy/saving",
        "src/initializers",
        "src/optimizers",
        "src/models",
        "src/callbacks",
        "src/utils",
        "src/backend/common",
        "src/backend/tensorflow",
        "src/layers/attention",
        "src/layers/core",
        "src/layers/normalization",
        "src/layers/pooling",
        "src/layers/preprocessing",
        "src/layers/regularization",
        "src/layers/reshaping",
        "src/layers/rnn",
    ),
}


def clone(source: Path, folder: Path, project: Project) -> Target:
    """Clones a checkout for each side and changes the second clone."""
    for side in SIDES:
        shutil.rmtree(folder / side, ignore_errors=True)
        command = ("git", "clone", "-q", str(source), str(folder / side))
        subprocess.run(command, check=True)
    target = detect(folder / "before", project.table)
    if target.name == "tf_keras":
        add_protocol_buffers(folder, project)
    print(len(pull_request.apply(folder / "after", project)), "files changed")
    return target


def add_protocol_buffers(folder: Path, project: Project) -> None:
    """Adds the modules that upstream's build makes, from a release."""
    release = [r for r in project.table if r.name == "tf_keras"][-1]
    for path, data in project.files(release).items():
        if path.endswith("_pb2.py"):
            for side in SIDES:
                write(folder / side / path, data)


def environment(clone: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(clone),
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def check_import(python: str, clone: Path, name: str) -> None:
    """Makes sure that the tests run with the clone, not an installed Keras."""
    code = f"import {name}; print({name}.__file__)"
    found = subprocess.run(
        (python, "-c", code),
        env=environment(clone),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()[-1]
    print("import", name, "finds", found, flush=True)
    if clone not in Path(found).parents:
        sys.exit(f"This is not the clone in {clone}.")


def run(python: str, folder: Path, side: str, suite: str) -> None:
    """Runs upstream's tests of a suite in one clone."""
    # The change brings tests of its own, which upstream does not know.
    listed = subprocess.run(
        ("git", "ls-files", suite),
        cwd=folder / side,
        capture_output=True,
        text=True,
        check=True,
    )
    name = suite.replace("/", "-")
    report = folder / f"{side}-{name}.xml"
    report.unlink(missing_ok=True)
    with open(folder / f"{side}-{name}.log", "w") as log:
        # In a process of its own, so that a crash costs one test; one process
        # and no more, so that the tests keep their order.
        subprocess.run(
            (
                *(python, "-m", "pytest", "-p", "no:cacheprovider", "-q"),
                *("-n", "1", "--timeout", "600", "-k", LEFT_OUT),
                *("--junitxml", str(report)),
                *(p for p in listed.stdout.split() if p.endswith("_test.py")),
            ),
            cwd=folder / side,
            env=environment(folder / side),
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def outcomes(report: Path) -> dict[str, str]:
    """The outcome of each test in a report, none if there is no report."""
    found: dict[str, str] = {}
    if not report.exists():
        return found
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        broken = kinds & {"failure", "error"}
        name = f"{case.get('classname')}::{case.get('name')}"
        skipped = "skipped" if "skipped" in kinds else "passed"
        # A test that fails and then can't clean up is there twice.
        if broken or name not in found:
            found[name] = "failed" if broken else skipped
    return found


def compare(folder: Path, suites: tuple[str, ...]) -> Iterator[str]:
    """Prints the table; yields the tests with other outcomes."""
    head = [f"{outcome} {side}" for outcome in OUTCOMES for side in SIDES]
    print("|", " | ".join(["suite", *head]), "|")
    print("|", " | ".join(["---"] * (len(head) + 1)), "|")
    for suite in suites:
        name = suite.replace("/", "-")
        found = [outcomes(folder / f"{side}-{name}.xml") for side in SIDES]
        counts = [collections.Counter(f.values()) for f in found]
        row = [str(c[outcome]) for outcome in OUTCOMES for c in counts]
        print("|", " | ".join([suite, *row]), "|", flush=True)
        for test in sorted(found[0].keys() | found[1].keys()):
            before, after = (f.get(test, "missing") for f in found)
            if before != after:
                yield f"{test}: {before}, then {after}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("suites", metavar="SUITE", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", type=Path, default=Path("build/upstream"))
    parser.add_argument("--find-links", action="append", default=[])
    arguments = parser.parse_intermixed_args()
    project = Project(find_links=arguments.find_links)
    folder = arguments.folder.absolute()
    target = clone(arguments.checkout, folder, project)
    for side in SIDES:
        check_import(arguments.python, folder / side, target.name)
    suites = arguments.suites or [
        f"{target.name}/{suite}" for suite in SUITES[target.name]
    ]
    jobs = [(side, suite) for suite in suites for side in SIDES]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(lambda job: run(arguments.python, folder, *job), jobs))
    differences = list(compare(folder, tuple(suites)))
    print(*differences, sep="\n")
    if any(": passed, then " in line for line in differences):
        sys.exit(1)


if __name__ == "__main__":
    main()
