"""Data as people have it: folders of images, tables, frames, Hugging Face data sets."""

from gramfold.sources.base import Columns, Source
from gramfold.sources.cells import Cells
from gramfold.sources.encoder import TableEncoder
from gramfold.sources.folder import image_folder
from gramfold.sources.opening import is_raw, open_source, source_of
from gramfold.sources.statistics import RELEASE_WORDS, TableStatistics
from gramfold.sources.table import read_table, table_source

__all__ = [
    "RELEASE_WORDS", "Cells", "Columns", "Source", "TableEncoder", "TableStatistics", "image_folder", "is_raw", "open_source",
    "read_table", "source_of", "table_source",
]  # fmt: skip
