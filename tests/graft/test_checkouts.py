"""The real overlay on real checkouts, which GRAFT_CHECKOUTS names.

GRAFT_CHECKOUTS=../keras:../tf-keras pytest tests/graft/test_checkouts.py
"""

import os
from pathlib import Path

import pytest

from graft.bazel import BuildFiles
from graft.bazel import imports
from graft.checkout import detect
from graft.project import Project
from graft.pull_request import changes_of

PROJECT = Project()
CHECKOUTS = os.environ.get("GRAFT_CHECKOUTS", "").split(os.pathsep)
each_part = pytest.mark.parametrize(
    "only", [(), *((part,) for part in PROJECT.table.parts)], ids="-".join
)


@pytest.fixture(params=CHECKOUTS)
def checkout(request):
    if not request.param:
        pytest.skip("GRAFT_CHECKOUTS names no clones of keras and tf-keras")
    return Path(request.param)


@each_part
def test_change(checkout, only):
    target = detect(checkout, PROJECT.table, only)
    changes = changes_of(target, PROJECT)
    assert changes
    for path, data in changes.items():
        compile(data, path, "exec", dont_inherit=True)
        assert data != target.read(path)
        for word in (b"graft", b"fork"):
            assert word not in data, path


@each_part
def test_rules(checkout, only):
    target = detect(checkout, PROJECT.table, only)
    changes = changes_of(target, PROJECT)
    texts = target.build_files()
    if not texts:
        pytest.skip(f"{checkout} has no BUILD files")
    texts = {p: changes.get(p, t.encode()).decode() for p, t in texts.items()}
    files = BuildFiles(texts, target.root)
    for path in sorted(set(changes) - set(texts)):
        owner = files.owners[path]
        before = imports((target.read(path) or b"").decode())
        added = imports(changes[path].decode()) - before
        labels = {files.label(*names) for names in added} - {""}
        assert labels <= files.reached(owner), path
