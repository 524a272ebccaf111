"""Grafts the real overlay onto every release of the table."""

import pytest

from graft.project import Project

PROJECT = Project()


def test_listed_files_are_there():
    paths = [file.path for file in PROJECT.overlay(tests=True)]
    listed = {p for files in PROJECT.table.parts.values() for p in files}
    assert listed == set(paths)
    assert PROJECT.table.new <= listed


@pytest.mark.releases
@pytest.mark.parametrize("release", list(PROJECT.table), ids=str)
def test_release_can_be_grafted(release):
    files = PROJECT.files(release)
    changes = PROJECT.changes(release, files, tests=True)
    for path, data in changes.items():
        assert data != files.get(path)
        compile(data, path, "exec", dont_inherit=True)
    assert changes
