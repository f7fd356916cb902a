"""What is wrong with tables, before anything is fitted: units, codes, gaps, IDs, leaks, duplicates, by client and column."""

from gramfold.checking.beside import check_rows, check_site, check_statistics
from gramfold.checking.checked import check_source, check_tables
from gramfold.checking.finding import NOTICE, SERIOUS, Finding, Report
from gramfold.checking.table import ClientTable, tables_of

__all__ = [
    "NOTICE",
    "SERIOUS",
    "ClientTable",
    "Finding",
    "Report",
    "check_rows",
    "check_site",
    "check_source",
    "check_statistics",
    "check_tables",
    "tables_of",
]
