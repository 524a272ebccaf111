"""The command line."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

import click

from graft import pull_request
from graft import upstream
from graft.checkout import detect
from graft.errors import GraftError
from graft.errors import UnknownReleaseError
from graft.overlay import TESTS
from graft.project import Project
from graft.project import write
from graft.releases import Release
from graft.releases import Target
from graft.releases import parse
from graft.review import Body
from graft.review import difference
from graft.review import unreviewed

DIRECTORY = click.Path(path_type=Path, file_okay=False)


class _Group(click.Group):
    """Shows the tool's own errors without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except GraftError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
@click.option(
    "--find-links",
    multiple=True,
    metavar="DIRECTORY",
    help="Look for upstream wheels there first; may be repeated.",
)
@click.option(
    "--overlay",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Graft this overlay instead of keras/.",
)
@click.pass_context
def main(
    context: click.Context,
    find_links: tuple[str, ...],
    overlay: Path | None,
) -> None:
    """Puts the overlay in keras/ into upstream Keras.

    RELEASE is written name==version, for example tf_keras==2.21.0.
    """
    context.obj = Project(find_links=find_links)
    if overlay:
        context.obj.directory = overlay


@main.command()
@click.argument("release")
@click.argument("directory", type=DIRECTORY)
@click.option("--tests", is_flag=True, help="Include the overlay's tests.")
@click.pass_obj
def tree(project: Project, release: str, directory: Path, tests: bool) -> None:
    """Writes the whole grafted package into DIRECTORY."""
    target = project.table.release(release)
    files = project.files(target)
    changes = project.changes(target, files, tests)
    for path, data in {**files, **changes}.items():
        if ".dist-info/" not in path:
            write(directory / path, data)
    click.echo(f"{target}: {len(changes)} files grafted")


@main.command()
@click.argument("release")
@click.argument("directory", type=DIRECTORY)
@click.pass_obj
def tests(project: Project, release: str, directory: Path) -> None:
    """Writes the overlay's tests only, for an installed fork or stock."""
    target = project.table.release(release)
    changes = project.changes(target, project.files(target), tests=True)
    chosen = {p: d for p, d in changes.items() if p.endswith(TESTS)}
    for path, data in chosen.items():
        write(directory / path, data)
    click.echo(f"{target}: {len(chosen)} files")


@main.command()
@click.argument("release")
@click.option(
    "-o",
    "--output",
    type=DIRECTORY,
    default=Path("dist"),
    help="Where the wheel goes; dist by default.",
)
@click.pass_obj
def wheel(project: Project, release: str, output: Path) -> None:
    """Builds a wheel of the fork."""
    click.echo(project.wheel(project.table.release(release), output))


@main.command()
@click.argument(
    "directory",
    metavar="CHECKOUT",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
)
@click.option(
    "--only",
    multiple=True,
    metavar="PART",
    help="Leave the other parts of the change out; may be repeated.",
)
@click.pass_obj
def apply(project: Project, directory: Path, only: tuple[str, ...]) -> None:
    """Changes a clean git checkout of keras or tf-keras in place."""
    written = pull_request.apply(directory, project, only)
    for path in written:
        click.echo(path)
    click.echo(f"{len(written)} files changed" if written else "nothing to do")


@main.command()
@click.argument("releases", metavar="[RELEASE]...", nargs=-1)
@click.pass_obj
def check(project: Project, releases: tuple[str, ...]) -> None:
    """Grafts releases without writing anything; all of them by default."""
    errors: list[GraftError] = []
    for release in _chosen(project, releases):
        try:
            changes = project.changes(release, project.files(release), True)
            for path, data in changes.items():
                compile(data, path, "exec", dont_inherit=True)
            click.echo(f"{release}: {len(changes)} files")
        except GraftError as error:
            errors.append(error)
            click.echo(f"{release}: {str(error).splitlines()[0]}")
    if errors:
        raise click.ClickException(
            f"{len(errors)} releases cannot be grafted, the first since\n"
            f"{errors[0]}"
        )


@main.command("releases")
@click.pass_obj
def list_releases(project: Project) -> None:
    """Lists the releases in the table."""
    for release in project.table:
        click.echo(
            f"{release!s:18} python{release.python:13} "
            f"tensorflow{release.tensorflow}"
        )


@main.command()
@click.argument("releases", metavar="[RELEASE|CHECKOUT]...", nargs=-1)
@click.option("--accept", is_flag=True, help="Record them as reviewed.")
@click.pass_obj
def review(project: Project, releases: tuple[str, ...], accept: bool) -> None:
    """Shows the upstream bodies that the overlay replaces unreviewed.

    A RELEASE may be one that the table lacks; --accept then adds it.
    """
    chosen = [_described(project, text) for text in releases]
    chosen = chosen or list(project.table)
    errors: list[GraftError] = []
    found = [b for r in chosen for b in project.bodies(r, errors)]
    _show(project, found)
    if accept:
        _accept(project, found, complete=not (releases or errors))
    if accept and not errors:
        for target in chosen:
            if isinstance(target, Release):
                project.table.add(target)
    if errors:
        messages = sorted({str(error) for error in errors})
        raise click.ClickException("\n".join(messages))


def _show(project: Project, found: list[Body]) -> None:
    """Prints each body to review once, with the releases that have it."""
    groups = unreviewed(found, project.reviewed)
    known = _known(project, {path for path, _, _ in groups}) if groups else []
    for group in groups.values():
        names = ", ".join(str(body.target) for body in group)
        click.echo(f"{group[0].path}: {group[0].qualname} in {names}")
        click.echo(difference(group[0], known))
        known.append(group[0])
    click.echo(f"{len(groups)} bodies to review")


def _accept(project: Project, found: list[Body], complete: bool) -> None:
    """Records bodies; a complete review also drops what is not replaced."""
    project.reviewed.accept(found)
    if complete:
        project.reviewed.keep_only(found)
    project.reviewed.write()


def _known(project: Project, paths: Collection[str]) -> list[Body]:
    """Returns the reviewed bodies that the table's releases have in files."""
    releases = list(project.table)
    found = [b for r in releases for b in project.bodies(r, [], paths)]
    return [
        body
        for body in found
        if project.reviewed.holds(body.path, body.qualname, body.fingerprint)
    ]


def _chosen(project: Project, releases: tuple[str, ...]) -> list[Release]:
    if not releases:
        return list(project.table)
    return [project.table.release(text) for text in releases]


def _described(project: Project, text: str) -> Target:
    """Describes a checkout; a release; or a new one by its wheel."""
    if Path(text).is_dir():
        return detect(Path(text), project.table)
    try:
        return project.table.release(text)
    except UnknownReleaseError:
        name, version = parse(text)
        target = project.table.target(name, version)
        data = upstream.fetch(target, project.find_links)
        sha256 = hashlib.sha256(data).hexdigest()
        return project.table.describe(name, version, sha256)
