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
from tests.release_matrix import newest_patches  # noqa: E402

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

STOCK = (
    "keras==2.9.0",
    "keras==2.15.0",
    "tf_keras==2.21.0",
    "keras==3.15.1",
)
PYTHONS = ("3.11", "3.10", "3.12", "3.13")
TOOL = ("click", "libcst", "packaging", "tomli")
TESTING = ("absl-py", "h5py", "ml-dtypes", "pytest", "pytest-xdist")

FORK_TESTS = ("tests/test_issue.py", "tests/test_stock_files.py")

# The layer loop's controls in other precisions run in the usual sessions only.
MATRIX_TESTS = "-k 'not (LayerRoundTripTest and (_float16 or _float32))'"

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
DEFAULT = Table().default


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Checks style and formatting."""
    session.install("ruff==0.14.*")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.install(*TOOL)
    session.run("python", "-m", "tests.release_matrix", "table", "--check")


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
def stock(session: nox.Session, release: str) -> None:
    """Runs the same tests against the release itself, where many must fail."""
    install_tensorflow(session, RELEASES[release])
    session.install(release)
    check(session, RELEASES[release])


@nox.session(python="3.11", venv_backend="venv")
@nox.parametrize("backend", ["jax", "torch"], ids=["jax", "torch"])
def backend(session: nox.Session, backend: str) -> None:
    """Runs the newest Keras 3 on another backend than TensorFlow."""
    # The same torch everywhere: others bring gigabytes that a CPU can't use.
    session.install({"jax": "jax", "torch": "torch==2.13.0"}[backend])
    install_fork(session, RELEASES[DEFAULT])
    session.env["KERAS_BACKEND"] = backend
    check(session, RELEASES[DEFAULT], backend)


@nox.session
@EACH_RELEASE
def oldest(session: nox.Session, release: str) -> None:
    """Runs a release with the oldest h5py and NumPy that it admits."""
    install_tensorflow(session, RELEASES[release])
    session.install(
        *("--resolution", "lowest-direct"),
        *("--only-binary", "h5py", "--only-binary", "numpy"),
        *requirements(RELEASES[release]),
        "h5py",
        "numpy",
    )
    install_wheel(session, RELEASES[release])
    check(session, RELEASES[release], "oldest h5py and NumPy")


@nox.session(venv_backend="none")
def matrix(session: nox.Session) -> None:
    """Runs all of it, and writes the table in the README: for some hours."""
    os.environ["RESULTS"] = "results"
    os.environ["PYTEST_ADDOPTS"] = MATRIX_TESTS
    for release in newest_patches(RELEASES.values()):
        session.notify(f"fork({release})")
    for release in STOCK:
        for kind in ("stock", "oldest", "interop"):
            session.notify(f"{kind}({release})")
    for other in ("jax", "torch"):
        session.notify(f"backend({other})")
    session.notify("table")


@nox.session(python="3.11")
def table(session: nox.Session) -> None:
    """Writes the results into the README."""
    session.install(*TOOL)
    session.run("python", "-m", "tests.release_matrix", "table")


@nox.session
@EACH_RELEASE
def interop(session: nox.Session, release: str) -> None:
    """Opens what the fork for a release writes in stock and other forks."""
    install_fork(session, RELEASES[release])
    session.install("uv")
    report = Path(session.create_tmp()) / "report.xml"
    session.env["KERAS_MODULE"] = RELEASES[release].name
    session.env["INTEROP_FOLDER"] = str(Path(".nox", "readers").absolute())
    try:
        session.run(
            *("pytest", "--junitxml", str(report), "tests/test_interop.py")
        )
    finally:
        record(session, RELEASES[release], "", report)


def check(session: nox.Session, release: Release, variant: str = "") -> None:
    """Runs everything against the Keras that is installed in a session."""
    folder = Path(session.create_tmp()) / "overlay_tests"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "graft", "tests", str(release), str(folder))
    report = folder.with_name("report.xml")
    session.env["KERAS_MODULE"] = release.name
    session.env["PYTHONPATH"] = "."
    try:
        session.run(
            *("pytest", "-n", str(os.cpu_count())),
            *("-p", "tests.release_quirks", "--junitxml", str(report)),
            *(str(folder), *FORK_TESTS, *session.posargs),
        )
    finally:
        record(session, release, variant, report)


def record(
    session: nox.Session, release: Release, variant: str, report: Path
) -> None:
    """Writes the result file of a session, whether it passed or not."""
    kind = session.name.partition("(")[0].partition("-")[0]
    name = "-".join([release.distribution, kind, *variant.split()])
    result = f"{os.environ.get('RESULTS', 'build/results')}/{name}.json"
    command = ("python", "-m", "tests.release_matrix", "record")
    session.run(*command, str(report), result, session.name, variant)


def requirements(release: Release) -> tuple[str, ...]:
    """TensorFlow for a release, and what that needs and does not say."""
    tensorflow = f"tensorflow{release.tensorflow}"
    return tensorflow, *CONSTRAINTS.get(tensorflow, ())


def install_tensorflow(session: nox.Session, release: Release) -> None:
    session.install(*requirements(release), *TOOL, *TESTING)


def install_wheel(session: nox.Session, release: Release) -> None:
    session.install(
        *("--force-reinstall", "--no-deps"), ".", f"-Cupstream={release}"
    )


def install_fork(session: nox.Session, release: Release) -> None:
    install_tensorflow(session, release)
    install_wheel(session, release)
