"""Folders of images: a folder per class, and above those perhaps one per client, or train and test.

photos/CLASS/a.jpg
photos/CLIENT/CLASS/a.jpg
photos/train/CLASS/a.jpg, photos/test/CLASS/b.jpg        (CLIENT/ may come below train/)
photos/a.jpg                                             without labels, to predict them
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gramfold.errors import FileError
from gramfold.sources.base import IMAGES, TESTING, TRAINING, Source, split_of

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
LAYOUT = "expected FOLDER/CLASS/IMAGE, or FOLDER/CLIENT/CLASS/IMAGE"


def image_folder(folder: str | Path) -> Source:
    """The images of a folder, sorted by path; how deep they lie says what the folders are."""
    place = Path(folder)
    if not place.is_dir():
        raise FileError(f"no such folder: {place}")
    paths = sorted(_images(place))
    if not paths:
        raise FileError(f"{place} holds no images ({', '.join(sorted(SUFFIXES))}), and no tables; {LAYOUT}")
    parts = [path.relative_to(place).parts[:-1] for path in paths]
    train = None
    if parts[0] and {part[0].lower() for part in parts if part} <= {*TRAINING, *TESTING}:
        train = split_of([part[0] for part in parts], str(place))
        parts = [part[1:] for part in parts]
    depth = len(parts[0])
    odd = next((path for path, part in zip(paths, parts, strict=True) if len(part) != depth), None)
    if odd is not None or depth > 2:
        raise FileError(f"{odd or paths[0]} does not lie as deep as it should; {LAYOUT}")
    labels = np.array([part[-1] for part in parts]) if depth else None
    client = np.array([part[0] for part in parts]) if depth == 2 else None
    return Source(place.name or str(place), IMAGES, paths, labels, client, train)


def _images(folder: Path) -> Iterator[Path]:
    """All images below a folder, but for hidden ones. Links within it are followed, to every place once; none may lead out: a
    folder from elsewhere could take in any file here."""
    root, seen = os.path.realpath(folder), set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        images = [name for name in files if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES]
        for name in (*folders, *images):
            path = os.path.join(place, name)
            if os.path.islink(path) and os.path.commonpath([root, os.path.realpath(path)]) != root:
                raise FileError(f"{path} is a link that leads out of {folder}; put the images themselves there")
        yield from (Path(place) / name for name in images)
