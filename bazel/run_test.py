"""Runs one test of a grafted tree: `run_test.py TREE NAME_test.py [FLAG...]`.

absltest understands what Bazel asks of a test: filter, shards, XML report.
"""

import importlib
import os
import pathlib
import sys

from absl.testing import absltest


def main(program: str, tree: str, name: str, *flags: str) -> None:
    root = pathlib.Path(tree).absolute()
    found = list(root.rglob(name))
    if len(found) != 1:
        sys.exit(f"Expected one {name} below {root}. Received: {found}")

    # Before the installed Keras, for the child processes of a test as well.
    paths = [str(root), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    sys.path.insert(0, str(root))

    parts = found[0].relative_to(root).with_suffix("").parts
    module = importlib.import_module(".".join(parts))
    # unittest takes a run without tests for a success before Python 3.12.
    if not absltest.TestLoader().loadTestsFromModule(module).countTestCases():
        sys.exit(f"No tests in {found[0]}")
    absltest.main(module=module, argv=[program, *flags])


if __name__ == "__main__":
    main(*sys.argv)
