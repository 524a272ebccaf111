"""PEP 517 hooks. They only delegate.

`-C upstream=tf_keras==2.21.0` picks the release to graft, and
`-C find-links=DIRECTORY` says where its wheel is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from typing import Optional

from graft import sdist
from graft.project import Project
from graft.releases import Release

Settings = Optional[dict[str, Any]]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return []


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    project, release = _request(config_settings)
    return project.metadata(release, Path(metadata_directory))


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    project, release = _request(config_settings)
    return project.wheel(release, Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    _, release = _request(config_settings)
    return sdist.write_sdist(release, Path(sdist_directory)).name


def _request(settings: Settings) -> tuple[Project, Release]:
    settings = settings or {}
    links = settings.get("find-links", [])
    project = Project(find_links=[links] if isinstance(links, str) else links)
    default = sdist.packed_release() or project.table.default
    return project, project.table.release(settings.get("upstream", default))
