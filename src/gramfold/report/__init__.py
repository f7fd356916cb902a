"""Results as people like to see them: a table in the terminal, a page in the browser."""

from gramfold.report.html import render_page
from gramfold.report.table import result_table

__all__ = ["render_page", "result_table"]
