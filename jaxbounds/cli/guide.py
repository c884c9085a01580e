"""`jaxbounds guide`: print the pages of the guide in a shell."""

from importlib import resources
from typing import Annotated

import tyro

from jaxbounds.cli.answers import answer
from jaxbounds.cli.first import GUIDE
from jaxbounds.cli.help_text import page
from jaxbounds.ground.exceptions import Refused

TOPICS = (
    "start", "questions", "say", "limits", "verdicts", "codes", "source", "papers", "certify",
    "kernel", "constants", "curvature", "figures", "results", "sweeps", "engines", "evidence",
    "files", "programs", "changes",
)  # fmt: skip
"""The pages in reading order; each is `jaxbounds/guide/<topic>.md`, which begins with "# topic:
...".
"""


def topic_text(topic: str, /) -> str:
    """Return the Markdown of a topic.

    Raises:
        Refused: if the guide has no page on the topic.
    """
    if topic not in TOPICS:
        raise Refused(f"topic={topic!r} has no page. Try one of: {', '.join(TOPICS)}")
    return (resources.files("jaxbounds") / "guide" / f"{topic}.md").read_text(encoding="utf8")


def guide(topic: Annotated[str, tyro.conf.Positional] = "", /) -> int:
    """Print the guide's page on a topic; without a topic, print the list of topics.

    Args:
        topic: the name of the topic; the page "start" leads from an inequality to a verdict.
    """
    if topic:
        text = topic_text(topic)
        answer(topic=topic, text=text)
        print(page(text), end="")
        return 0
    answer(topics=list(TOPICS))
    print(GUIDE, end="")
    for name in TOPICS:
        _, about = topic_text(name).partition("\n")[0].split(": ", 1)
        print(f"  {name:<10} {about}")
    return 0
