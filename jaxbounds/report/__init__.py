"""Make the output of commands, and the HTML page that `jaxbounds verify` writes."""

from jaxbounds.report.columns import closeness, number
from jaxbounds.report.describe import describe, describe_erratum, instance_text
from jaxbounds.report.page import html_page
from jaxbounds.report.quantifiers import in_one_line
from jaxbounds.report.slack import slack_figure
from jaxbounds.report.source import source
from jaxbounds.report.terminal import (
    VerdictRows,
    paper_table,
    statement_table,
    summary,
    verdict_table,
)

__all__ = [
    "VerdictRows",
    "closeness",
    "describe",
    "describe_erratum",
    "html_page",
    "in_one_line",
    "instance_text",
    "number",
    "paper_table",
    "slack_figure",
    "source",
    "statement_table",
    "summary",
    "verdict_table",
]
