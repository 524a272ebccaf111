import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from small_upstream import CODEC
from small_upstream import STORE
from small_upstream import add_to_overlay
from small_upstream import command
from small_upstream import write_files
from small_upstream import write_upstream_wheel

from graft import errors
from graft.overlay import load
from graft.project import Project
from graft.releases import Table
from graft.review import Reviewed
from graft.review import difference
from graft.review import unreviewed

NOTICE = "# This file was {} by the bfloat16 fork of Keras.\n"


def test_overlay_files_and_the_notice(project, release):
    changes = project.changes(release, project.files(release), tests=True)
    assert sorted(changes) == [
        "tf_keras/src/saving/codec.py",
        "tf_keras/src/saving/codec_test.py",
        "tf_keras/src/saving/store.py",
    ]
    store = changes["tf_keras/src/saving/store.py"].decode()
    rule = "# ==========\n"
    assert store.startswith(f"# Licence.\n{rule}{NOTICE.format('changed')}")
    assert "from tf_keras.src.saving import codec\n" in store
    codec = changes["tf_keras/src/saving/codec.py"].decode()
    assert codec == NOTICE.format("added") + CODEC


def test_wheels_leave_tests_out(project, release):
    changes = project.changes(release, project.files(release))
    assert "tf_keras/src/saving/codec_test.py" not in changes


def test_upstreams_tests_in_a_wheel_stay(project, wheels, package):
    path = "tf_keras/src/saving/store_test.py"
    add_to_overlay(project, {"saving/store_test.py": "def f():\n    pass\n"})
    wheel = write_upstream_wheel(wheels, "2.21.0", {**package, path: "x = 1\n"})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    project.table.data["wheels"]["tf_keras==2.21.0"] = digest
    release = project.table.release("tf_keras==2.21.0")
    files = project.files(release)
    assert path in files
    assert path not in project.changes(release, files, tests=True)
    assert "saving/store_test.py" not in str(project.bodies(release))


def replace_in_store(project, wheels, before, after):
    """Lets upstream publish another body under the same version."""
    assert before in STORE
    text = STORE.format(root="tf_keras.src").replace(before, after)
    wheel = write_upstream_wheel(
        wheels, "2.21.0", {"tf_keras/src/saving/store.py": text}
    )
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    project.table.data["wheels"]["tf_keras==2.21.0"] = digest
    return project.table.release("tf_keras==2.21.0")


def test_comment_upstream_needs_no_review(project, wheels):
    release = replace_in_store(project, wheels, "a file.", "the file.")
    assert project.changes(release, project.files(release))


def test_one_altered_token_needs_review(project, wheels):
    release = replace_in_store(project, wheels, "load(path)", "load(path, 1)")
    with pytest.raises(errors.NotReviewedError) as caught:
        project.changes(release, project.files(release))
    message = str(caught.value)
    for part in ("store.py: read", "tf_keras==2.21.0", "graft review"):
        assert part in message


def test_review_shows_and_accepts(project, wheels, release):
    known = project.bodies(release)
    release = replace_in_store(project, wheels, "load(path)", "load(path, 1)")
    found = project.bodies(release)
    ((key, group),) = unreviewed(found, project.reviewed).items()
    assert key[:2] == ("keras/saving/store.py", "read")
    shown = difference(group[0], known)
    assert "-    return backend.load(path)\n" in shown
    assert "+    return backend.load(path, 1)\n" in shown
    project.reviewed.accept(found)
    project.reviewed.write()
    project.reviewed = Reviewed(project.reviewed.path)
    assert not unreviewed(found, project.reviewed)
    assert not unreviewed(known, project.reviewed)
    assert project.changes(release, project.files(release))


def test_review_forgets_what_is_not_replaced(project, release):
    project.reviewed.keep_only([])
    assert unreviewed(project.bodies(release), project.reviewed)


@pytest.mark.parametrize(
    "path, text, error, message",
    [
        ("moved.py", "def f():\n    pass\n", errors.MissingTargetError, "move"),
        ("__init__.py", "", errors.OverlayError, "__init__"),
        (
            "saving/codec.py",
            "'''Doc.'''\n\n\nx = 1\n# graft: keras\n",
            errors.OverlayError,
            "limits nothing",
        ),
    ],
)
def test_misplaced_overlay_file(project, release, path, text, error, message):
    add_to_overlay(project, {path: text})
    with pytest.raises(error, match=message):
        project.changes(release, project.files(release))


def test_file_in_no_part(project, release):
    write_files(project.directory, {"a.py": "def f():\n    pass\n"})
    with pytest.raises(errors.OverlayError, match="keras/a.py is in no part"):
        project.changes(release, project.files(release))


def test_file_limited_to_releases_and_parts(project, release):
    text = "# graft: tf_keras\n# graft: with {}\n\ndef f():\n    pass\n"
    add_to_overlay(project, {"a.py": text.format("reading")})
    chosen = {"reading": False, "testing": True}
    (file,) = (f for f in project.overlay() if f.path == "keras/a.py")
    assert file.source == "def f():\n    pass\n"
    assert file.serves(release)
    assert not file.serves(dataclasses.replace(release, parts=chosen))
    add_to_overlay(project, {"a.py": text.format("riting")})
    with pytest.raises(errors.UnknownPartError, match="Received: riting"):
        project.changes(release, project.files(release))


def test_new_module_that_upstream_has(project, release, package):
    project.table.data["new"].append("keras/saving/store.py")
    with pytest.raises(errors.OverlayError, match="listed as new"):
        project.changes(release, project.files(release))


def test_files_and_definitions_of_other_releases_are_left_out(project, release):
    add_to_overlay(
        project,
        {
            "a.py": "# graft: keras\n\ndef f():\n    pass\n",
            "b.py": "'''Doc.'''\n\n\n# graft: keras\ndef f():\n    pass\n",
            "src/c.py": "def f():\n    pass\n",
        },
    )
    assert len(project.changes(release, project.files(release))) == 2


def test_shared_module_goes_into_both_lines(project, release):
    files = {f.path: f for f in load(project.table, project.directory)}
    codec, store = (
        files[f"keras/saving/{name}.py"] for name in ("codec", "store")
    )
    keras_3 = dataclasses.replace(
        Project().table.release("keras==3.15.1"), parts=release.parts
    )
    assert codec.serves(keras_3) and not store.serves(keras_3)
    assert keras_3.path(codec.relative) == "keras/src/saving/codec.py"


def test_command_line_shows_errors_without_traceback():
    run = subprocess.run(
        [sys.executable, "-m", "graft", "tree", "keras==9.9.9", "nowhere"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("Error: keras==9.9.9 is not in")


def test_commands(command_line, tmp_path):
    release = "tf-keras==2.21.0"
    tests, tree = tmp_path / "tests", tmp_path / "tree"
    for words, shown in (
        (["check"], "tf_keras==2.21.0: 3 files\n"),
        (["releases"], "tensorflow==2.21.*"),
        (["review"], "0 bodies to review\n"),
        (["tests", release, str(tests)], "1 files\n"),
        (["tree", release, str(tree)], "2 files grafted\n"),
        (["wheel", release, "-o", str(tmp_path)], "+bf16.1-py2.py3"),
    ):
        result = command(command_line, *words)
        assert shown in result.output
        assert result.exit_code == 0
    (path,) = filter(Path.is_file, tests.rglob("*"))
    assert path == tests / "tf_keras/src/saving/codec_test.py"
    assert (tree / "tf_keras/src/saving/codec.py").exists()
    assert (tree / "tf_keras/__init__.py").exists()


def test_new_release_is_reviewed_and_added(command_line, wheels, package):
    package["tf_keras/src/saving/store.py"] += "\n\nx = 1\n"
    wheel = write_upstream_wheel(wheels, "2.22.0", package)
    assert command(command_line, "check", "tf_keras==2.22.0").exit_code == 1
    result = command(command_line, "review", "tf_keras==2.22.0", "--accept")
    assert "0 bodies to review" in result.output
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    table = Table(command_line.table.path)
    assert table.release("tf_keras==2.22.0").sha256 == digest
    assert command(command_line, "check", "tf_keras==2.22.0").exit_code == 0


def test_review_goes_on_after_a_wrong_file(command_line):
    add_to_overlay(command_line, {"a.py": "def f():\n    pass\n"})
    command_line.reviewed.entries = {}
    result = command(command_line, "review", "--accept")
    assert result.exit_code == 1
    assert "a.py has no upstream module" in result.output
    assert command_line.reviewed.entries["keras/saving/store.py"]["read"]
