"""The command line."""

from __future__ import annotations

from pathlib import Path

import click

from graft import upstream
from graft.errors import GraftError
from graft.overlay import load
from graft.releases import table
from graft.tree import graft_tree


class _Group(click.Group):
    """Shows the tool's own errors without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except GraftError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
@click.option("--find-links", multiple=True, help="A folder of wheels.")
@click.pass_context
def main(context: click.Context, find_links: tuple[str, ...]) -> None:
    """Grafts the overlay in keras/ onto upstream Keras."""
    context.obj = find_links


@main.command()
@click.argument("release")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--tests", is_flag=True, help="Include the overlay's tests.")
@click.pass_obj
def tree(
    find_links: tuple[str, ...], release: str, directory: Path, tests: bool
) -> None:
    """Writes the grafted package of RELEASE into DIRECTORY."""
    target = table().release(release)
    files = upstream.files(target, find_links)
    overlay = [file for file in load(table().new) if tests or not file.is_test]
    changes = graft_tree(files.get, target, overlay)
    for path, data in {**files, **changes}.items():
        if ".dist-info/" not in path:
            destination = directory / path
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(data)
    click.echo(f"{target}: {len(changes)} files grafted")
