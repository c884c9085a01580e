"""What the commands print, and the HTML page that `jaxbounds verify` leaves."""

from jaxbounds.report.page import html_page
from jaxbounds.report.slack import slack_figure
from jaxbounds.report.terminal import (
    VerdictRows,
    closeness,
    describe,
    describe_erratum,
    instance_text,
    number,
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
    "instance_text",
    "number",
    "paper_table",
    "slack_figure",
    "statement_table",
    "summary",
    "verdict_table",
]
