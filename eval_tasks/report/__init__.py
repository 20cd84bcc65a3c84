"""A run, a comparison, or what a regrading moved, for a terminal, as JSON and as one self-contained HTML file."""

from eval_tasks.report.comparison_document import comparison_json, comparison_schema
from eval_tasks.report.document import SCHEMA_VERSION, report_json, report_schema
from eval_tasks.report.page import report_html
from eval_tasks.report.regrade import regrade_html, regrade_json, regrade_text
from eval_tasks.report.terminal import render_terminal, terminal_text
from eval_tasks.report.view import ReportView

__all__ = [
    "SCHEMA_VERSION",
    "ReportView",
    "comparison_json",
    "comparison_schema",
    "regrade_html",
    "regrade_json",
    "regrade_text",
    "render_terminal",
    "report_html",
    "report_json",
    "report_schema",
    "terminal_text",
]
