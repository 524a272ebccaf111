"""The project's sessions: `nox -l` lists them, `nox` runs the usual ones.

One session a release builds the fork as a user does, `pip install .`, beside
the TensorFlow and the Python that the release needs.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox
from packaging.specifiers import SpecifierSet

sys.path.insert(0, str(Path(__file__).parent))

from graft.releases import Release  # noqa: E402
from graft.releases import Table  # noqa: E402

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
# A Python that is not there is said so, and its sessions are not run.
nox.options.error_on_missing_interpreters = False
nox.options.sessions = [
    "lint",
    "tests",
    "fork(keras==3.15.1)",
    "fork(tf_keras==2.21.0)",
    "fork(keras==2.15.0)",
    "fork(keras==2.9.0)",
]

PYTHONS = ("3.11", "3.10", "3.12", "3.13")
TOOL = ("click", "libcst", "packaging", "tomli")
TESTING = ("absl-py", "h5py", "ml-dtypes", "pytest", "pytest-xdist")

FORK_TESTS = ("tests/test_issue.py", "tests/test_stock_files.py")

# What these TensorFlows need and don't say. Their own limits came later.
CONSTRAINTS = {
    "tensorflow==2.9.*": ("numpy<2", "protobuf<3.20"),
    "tensorflow==2.10.*": ("numpy<2", "protobuf<3.20"),
    "tensorflow==2.11.*": ("numpy<2",),
}


def python_for(release: Release) -> str:
    """The Python to run a release with: the first that it admits."""
    admitted = SpecifierSet(release.python)
    return next(p for p in PYTHONS if admitted.contains(f"{p}.99"))


RELEASES = {str(release): release for release in Table()}


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Checks style and formatting."""
    session.install("ruff==0.14.*")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(python="3.11")
def tests(session: nox.Session) -> None:
    """Tests the tool, and that the overlay fits every release."""
    session.install(*TOOL, "h5py", "pip", "pytest", "pytest-xdist", "wheel")
    session.run("pytest", "-n", str(os.cpu_count()), "tests/graft")


EACH_RELEASE = nox.parametrize(
    "python,release",
    [(python_for(release), name) for name, release in RELEASES.items()],
    ids=list(RELEASES),
)


@nox.session
@EACH_RELEASE
def fork(session: nox.Session, release: str) -> None:
    """Installs the fork for a release and runs everything against it."""
    install_fork(session, RELEASES[release])
    check(session, RELEASES[release])


@nox.session
@EACH_RELEASE
def interop(session: nox.Session, release: str) -> None:
    """Opens what the fork for a release writes in stock releases."""
    install_fork(session, RELEASES[release])
    session.install("uv")
    session.run(
        "pytest",
        "tests/test_interop.py",
        env={
            "KERAS_MODULE": RELEASES[release].name,
            "INTEROP_FOLDER": str(Path(".nox", "stock").absolute()),
        },
    )


def check(session: nox.Session, release: Release, variant: str = "") -> None:
    """Runs everything against the Keras that is installed in a session."""
    folder = Path(session.create_tmp()) / "overlay_tests"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "graft", "tests", str(release), str(folder))
    report = str(folder.with_name("report.xml"))
    name = "-".join([release.distribution, *variant.split()])
    session.env["KERAS_MODULE"] = release.name
    session.env["PYTHONPATH"] = os.pathsep.join([".", "tests"])
    try:
        session.run(
            *("pytest", "-n", str(os.cpu_count()), "-p", "release_quirks"),
            *("--junitxml", report, str(folder), *FORK_TESTS),
            *session.posargs,
        )
    finally:
        script = "tests/release_matrix.py"
        result = f"{session.env.get('RESULTS', 'build/results')}/{name}.json"
        session.run("python", script, "record", report, result, variant)


def install_fork(session: nox.Session, release: Release) -> None:
    tensorflow = f"tensorflow{release.tensorflow}"
    session.install(
        tensorflow, *CONSTRAINTS.get(tensorflow, ()), *TOOL, *TESTING
    )
    session.install(
        "--reinstall-package", release.name, ".", f"-Cupstream={release}"
    )
