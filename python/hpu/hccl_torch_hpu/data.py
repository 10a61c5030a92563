# SPDX-License-Identifier: Apache-2.0
"""Loads data as torch does, under the names that programs for Gaudi use."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch.utils.data

_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class HabanaDataLoader(torch.utils.data.DataLoader):
    """``torch.utils.data.DataLoader`` under the vendor's name, with the same arguments."""


class ImageFolderWithManifest(torch.utils.data.Dataset):
    """The images in a folder that has one subfolder per class, or only those that a manifest lists.

    Args:
        root: the folder that contains one folder per class. Classes are numbered in alphabetical order.
        transform: converts an image to the first element of an item.
        target_transform: converts the class number to the second element of an item.
        loader: loads an image from a path; if it is None, PIL loads images as RGB.
        is_valid_file: returns whether a path is an image; if it is None, the extension decides.
        manifest: a list of paths relative to ``root``, or a file with one path per line; all images if it is None.

    Raises:
        FileNotFoundError: the folder does not exist, or there is no image.
        KeyError: the manifest lists an image outside the class folders.
    """

    def __init__(self, root: str, transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[int], Any] | None = None, loader: Callable[[str], Any] | None = None,
                 is_valid_file: Callable[[str], bool] | None = None,
                 manifest: str | Sequence[str] | None = None) -> None:
        self.root = str(root)
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader or _load_by_pil
        self.manifest = manifest
        folder = Path(root)
        self.classes = sorted(one.name for one in folder.iterdir() if one.is_dir())
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        is_image = is_valid_file or (lambda path: path.lower().endswith(_IMAGES))
        if manifest is None:
            paths = [one for name in self.classes for one in sorted((folder / name).rglob("*"))]
        else:
            lines = Path(manifest).read_text(encoding="utf-8").split("\n") if isinstance(manifest, str) else manifest
            paths = [folder / line.strip() for line in lines if line.strip()]
        self.samples = [(str(one), self.class_to_idx[one.relative_to(folder).parts[0]]) for one in paths
                        if one.is_file() and is_image(str(one))]
        self.imgs = self.samples
        self.targets = [number for _, number in self.samples]
        if not self.samples:
            raise FileNotFoundError(f"ImageFolderWithManifest: no images in the class folders of {root}")

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, number = self.samples[index]
        image = self.loader(path)
        return (self.transform(image) if self.transform else image,
                self.target_transform(number) if self.target_transform else number)


def _load_by_pil(path: str) -> Any:
    from PIL import Image

    with Image.open(path) as image:
        return image.convert("RGB")
