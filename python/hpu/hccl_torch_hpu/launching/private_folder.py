# SPDX-License-Identifier: Apache-2.0
"""Makes version checks find the Gaudi software release that the emulation imitates.

Optimum and others look for the distribution "habana-torch-plugin" in ``pip list`` and refuse to run without it. A
folder in the user's cache contains only the metadata of that distribution, without code. The environment itself is not
changed: only programs that ``hccl-hpu`` starts have the folder on their path.
"""
from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from .errors import LaunchError

# The release with which Optimum 1.21.2 has been validated.
RELEASE = "1.24.0"
PLUGIN = "habana-torch-plugin"
INSTALLER = "hccl-hpu"

_METADATA = f"""Metadata-Version: 2.1
Name: {PLUGIN}
Version: {RELEASE}
Summary: Placeholder created by hccl-torch-hpu for version checks; it contains no code and is not a product of the vendor.
"""


def folder_of_distributions(version: str) -> Path:
    """Returns the folder that contains the distribution's metadata, to be added to the path of programs. Creates the
    folder if it does not exist.

    Several processes may call this function concurrently: each creates a temporary folder, and the first to rename its
    folder wins.

    Args:
        version: the version of hccl-torch-hpu; each version has its own folder.

    Raises:
        LaunchError: the cache cannot be written, other users can write to it, or this user has no home directory.
    """
    root = _cache() / "hccl-torch-hpu"
    digest = hashlib.sha256(_METADATA.encode()).hexdigest()[:8]
    folder = root / f"{version}-{digest}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(root)
        if not _is_whole(folder):
            _make(folder)
        _require_own(folder)
    except OSError as error:
        raise LaunchError(f"cannot write {root}: {error.strerror}; set XDG_CACHE_HOME to a folder that you own") from None
    return folder


def _cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return Path(named)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise LaunchError("this user has no home directory; set XDG_CACHE_HOME to a folder that you own") from None


def _information(folder: Path) -> Path:
    return folder / f"{PLUGIN.replace('-', '_')}-{RELEASE}.dist-info"


def _is_whole(folder: Path) -> bool:
    try:
        return (_information(folder) / "METADATA").read_text() == _METADATA
    except OSError:
        return False


def _make(folder: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        information = _information(fresh)
        information.mkdir()
        (information / "METADATA").write_text(_METADATA)
        # pip does not uninstall a distribution that has no list of files, and prints the name of its installer instead.
        (information / "INSTALLER").write_text(f"{INSTALLER}\n")
        try:
            fresh.rename(folder)
        except OSError:
            if not _is_whole(folder):  # the existing folder is damaged
                shutil.rmtree(folder)
                fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _require_own(folder: Path) -> None:
    """Raises LaunchError unless only this user can write to the folder. Programs will import from it."""
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise LaunchError(f"other users can write to {folder}; remove it, or set XDG_CACHE_HOME to a folder that you own")
