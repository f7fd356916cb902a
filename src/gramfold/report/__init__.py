"""Results as people like to see them: text, a table in the terminal, a page in the browser, a table in a paper."""

from gramfold.report import papers
from gramfold.report.card import card_files, card_markdown, make_card, write_card
from gramfold.report.explanation import render_explanation
from gramfold.report.html import render_page, render_runs
from gramfold.report.summary import client_table, safe, summary_html, summary_text
from gramfold.report.table import comparison_table, result_table

__all__ = [
    "card_files", "card_markdown", "client_table", "comparison_table", "make_card", "papers", "render_explanation",
    "render_page", "render_runs", "result_table", "safe", "summary_html", "summary_text", "write_card",
]  # fmt: skip
