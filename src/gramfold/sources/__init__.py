"""Data as people have it: folders of images, tables, frames, Hugging Face data sets; and the tables' encoder."""

from gramfold.sources.base import Columns, Source
from gramfold.sources.cells import Cells
from gramfold.sources.coded import CodedTable, folded_encoder, say_unused
from gramfold.sources.encoder import TableEncoder
from gramfold.sources.encoding import encoded, encoded_with_remark, is_raw_table, places_of, raw_table
from gramfold.sources.folder import image_folder
from gramfold.sources.opening import client_source, is_raw, is_table, open_source, source_of
from gramfold.sources.pairs import is_pairs, is_splits
from gramfold.sources.reading import columns_of, is_complete, is_frame, read_table
from gramfold.sources.sites import files_of, joined, stacked
from gramfold.sources.statistics import RELEASE_WORDS, TableStatistics
from gramfold.sources.table import table_source

__all__ = [
    "RELEASE_WORDS", "Cells", "CodedTable", "Columns", "Source", "TableEncoder", "TableStatistics", "client_source",
    "columns_of", "encoded", "encoded_with_remark", "files_of", "folded_encoder", "image_folder", "is_complete", "is_frame",
    "is_pairs", "is_raw", "is_raw_table", "is_splits", "is_table", "joined", "open_source", "places_of", "raw_table",
    "read_table", "say_unused", "source_of", "stacked", "table_source",
]  # fmt: skip
