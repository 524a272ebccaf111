"""Checkouts of the tiny upstream, and what `graft apply` makes of them."""

import subprocess

import pytest
from small_upstream import CODEC
from small_upstream import STORE
from small_upstream import add_to_overlay
from small_upstream import command
from small_upstream import write_files

from graft import errors
from graft.pull_request import apply
from graft.review import Reviewed

BUILD = """\
load("rules.bzl", "py_library", "tf_py_test")

py_library(
    name = "saving",
    srcs = ["store.py"],
    deps = [
        "//tf_keras:backend",
    ],
)
"""
SIZES = """\
keras_test(
    name = "codec_test",
    size = "small",
)
"""
PARTS = """\
'''Decodes.'''

NAMES = []
# graft: with reading
NAMES.append("read")
# graft: with testing
NAMES.append("test")
"""


@pytest.fixture
def clone(tmp_path, project):
    directory = tmp_path / "clone"
    write_files(
        directory,
        {
            "tf_keras/__init__.py": '__version__ = "2.21.0"\n',
            "tf_keras/saving/store.py": STORE.format(root="tf_keras"),
        },
    )
    git(directory, "init", "-q")
    commit(directory)
    return directory


def git(directory, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    run = subprocess.run(
        ["git", *identity, *words], cwd=directory, check=True, stdout=-1
    )
    return run.stdout.decode()


def commit(directory):
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "x")


def change(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def refused(error, message, clone, project, *only):
    """Makes sure that a refusal says why, and that nothing was written."""
    before = git(clone, "status", "--porcelain", "-uall", "--", ".")
    with pytest.raises(error, match=message) as caught:
        apply(clone, project, only)
    assert git(clone, "status", "--porcelain", "-uall", "--", ".") == before
    return str(caught.value)


def test_apply_twice(project, clone):
    assert apply(clone, project) == [
        "tf_keras/saving/codec.py",
        "tf_keras/saving/codec_test.py",
        "tf_keras/saving/store.py",
    ]
    store = (clone / "tf_keras/saving/store.py").read_text()
    assert "from tf_keras.saving import codec\n" in store
    assert "fork" not in store
    assert apply(clone, project) == []
    commit(clone)
    assert apply(clone, project) == []


def test_new_files_carry_the_licence_of_the_others(project, clone):
    licence = "# Some License.\n# =====\n"
    package = clone / "tf_keras/__init__.py"
    package.write_text(licence + package.read_text())
    commit(clone)
    apply(clone, project)
    text = (clone / "tf_keras/saving/codec.py").read_text()
    assert text == licence + CODEC
    commit(clone)
    assert apply(clone, project) == []


def test_build_files(project, clone):
    write_files(clone, {"tf_keras/saving/BUILD": BUILD})
    write_files(project.directory, {"saving/BUILD": SIZES})
    commit(clone)
    assert "tf_keras/saving/BUILD" in apply(clone, project)
    text = (clone / "tf_keras/saving/BUILD").read_text()
    assert 'deps = [\n        ":codec",\n        "//tf_keras:ba' in text
    assert '    name = "codec_test",\n    size = "small",\n' in text
    assert apply(clone, project) == []
    commit(clone)
    assert apply(clone, project) == []


def test_only_some_parts(project, clone):
    written = apply(clone, project, ["testing"])
    assert written == [
        "tf_keras/saving/codec.py",
        "tf_keras/saving/codec_test.py",
    ]
    commit(clone)
    refused(errors.UnknownPartError, "reading or testing", clone, project, "x")
    assert apply(clone, project, ["reading"]) == ["tf_keras/saving/store.py"]


def test_part_after_another_one_was_merged(project, clone):
    add_to_overlay(project, {"names.py": PARTS})
    project.table.parts["testing"].append("keras/names.py")
    project.table.data["new"].append("keras/names.py")
    names = clone / "tf_keras/names.py"
    apply(clone, project, ["testing"])
    assert names.read_text().endswith('NAMES = []\nNAMES.append("test")\n')
    commit(clone)
    error = errors.OverlayError
    refused(error, "name it with `--only` as well", clone, project, "reading")
    assert "tf_keras/names.py" in apply(clone, project)
    assert names.read_text().count("append") == 2


def test_command_line(command_line, clone):
    result = command(command_line, "apply", str(clone), "--only", "testing")
    assert result.output.endswith("codec_test.py\n2 files changed\n")
    result = command(command_line, "apply", str(clone), "--only", "testing")
    assert result.output == "nothing to do\n"
    result = command(command_line, "apply", str(clone), "--only", "writing")
    assert result.exit_code == 1
    assert "Received: writing" in result.output


@pytest.mark.parametrize("path", ["tf_keras/__init__.py", "tf_keras/saving"])
def test_dirty_checkout(project, clone, path):
    for file in [clone / path, *(clone / path).rglob("*")]:
        if file.is_file():
            file.unlink()
    refused(errors.CheckoutError, f"Received: {path}", clone, project)


def test_staged_change(project, clone):
    (clone / "README.md").write_text("x\n")
    git(clone, "add", "-A")
    refused(errors.CheckoutError, "Received: README.md", clone, project)


def test_untracked_file_elsewhere_is_none_of_its_business(project, clone):
    (clone / "notes.txt").write_text("x\n")
    assert apply(clone, project)


def test_untracked_file_in_the_way(project, clone):
    (clone / "tf_keras/saving/codec.py").write_text("x = 1\n")
    refused(errors.CheckoutError, "saving/codec.py", clone, project)


def test_tracked_file_in_the_way(project, clone):
    (clone / "tf_keras/saving/codec.py").write_text("x = 1\n")
    commit(clone)
    refused(errors.OverlayError, "listed as new", clone, project)


def test_another_overlay_applied(project, clone):
    apply(clone, project)
    change(clone / "tf_keras/saving/codec.py", "value", "values")
    refused(errors.CheckoutError, "saving/codec.py", clone, project)


def test_not_the_top_folder_of_a_checkout(project, clone, tmp_path):
    message = "no git checkout of Keras"
    for directory in (tmp_path, clone / "tf_keras"):
        with pytest.raises(errors.CheckoutError, match=message):
            apply(directory, project)
    write_files(clone, {"tf_keras/__init__.py": "x = 1\n"})
    commit(clone)
    refused(errors.CheckoutError, message, clone, project)


def test_all_unreviewed_bodies_are_named(project, clone):
    add_to_overlay(
        project,
        {
            "saving/other.py": "def g():\n    return 1\n",
            "saving/third.py": "def h():\n    return 1\n",
        },
    )
    write_files(clone, {"tf_keras/saving/other.py": "def g():\n    pass\n"})
    change(clone / "tf_keras/saving/store.py", "load(path)", "load(0)")
    commit(clone)
    error = errors.NotReviewedError
    message = refused(error, "tf_keras 2.21.0", clone, project)
    for part in (
        "saving/store.py: read",
        "saving/other.py: g",
        "saving/third.py has no upstream module",
        f"python -m graft review {clone}`",
    ):
        assert part in message


def test_review_of_a_checkout(command_line, clone):
    change(clone / "tf_keras/saving/store.py", "load(path)", "load(0)")
    commit(clone)
    result = command(command_line, "review", str(clone))
    assert "-    return backend.load(path)\n+    return backend.load(0)" in (
        result.output
    )
    assert command(command_line, "apply", str(clone)).exit_code == 1
    before = command_line.table.path.read_text()
    result = command(command_line, "review", str(clone), "--accept")
    assert result.output.endswith("1 bodies to review\n")
    assert command_line.table.path.read_text() == before
    command_line.reviewed = Reviewed(command_line.reviewed.path)
    assert command(command_line, "apply", str(clone)).exit_code == 0
    assert command(command_line, "review", str(clone)).output == (
        "0 bodies to review\n"
    )


def test_replaced_tests_are_reviewed_too(command_line, clone):
    path = "saving/store_test.py"
    add_to_overlay(command_line, {path: "def test():\n    assert 1 == 1\n"})
    write_files(clone, {f"tf_keras/{path}": "def test():\n    pass\n"})
    commit(clone)
    refused(errors.NotReviewedError, "store_test.py: t", clone, command_line)
    command(command_line, "review", str(clone), "--accept")
    # A complete review is one of wheels, and keeps what was accepted.
    command(command_line, "review", "--accept")
    assert f"tf_keras/{path}" in apply(clone, command_line)
    assert apply(clone, command_line) == []
