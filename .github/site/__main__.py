"""Make the documentation site: `python .github/site FOLDER [--pictures]` (extra `docs`).

The site goes into FOLDER, which must be new or a site that this command made. It needs no network
to be read. `--pictures` runs the notebooks first, in their fast mode, so that the site has their
pictures. The exit status is 1 if a link is dead, if a public name has no reference, or if Sphinx
warns of anything; the reasons are on standard error.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from access import complete
from links import dead_links
from sources import write_sources
from sphinx.cmd.build import build_main

SETTINGS = Path(__file__).parent
MARK = "objects.inv"
"""The file that each site has: a folder without it is not replaced."""


def build(out: Path, /, *, pictures: bool = False) -> int:
    """Write the site into a folder; the result is the exit status.

    Args:
        out: the folder.
        pictures: run the notebooks.

    Raises:
        ValueError: if the folder holds something else than a site.
    """
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).is_file():
            raise ValueError(f"out={out} holds other files. Try a new folder")
        shutil.rmtree(out)
    with tempfile.TemporaryDirectory() as room:
        source = Path(room) / "source"
        write_sources(source)
        mode = "force" if pictures else "off"
        given = ["-q", "-n", "-W", "--keep-going", "-D", f"nb_execution_mode={mode}"]
        places = ["-c", str(SETTINGS), "-d", f"{room}/trees", str(source), str(out)]
        status = build_main(["-b", "html", *given, *places])
    complete(out)
    dead = list(dead_links(out))
    for line in dead:
        print(f"dead link: {line}", file=sys.stderr)
    return int(bool(status or dead))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python .github/site", description=__doc__)
    parser.add_argument("out", type=Path, help="the folder of the site")
    parser.add_argument("--pictures", action="store_true", help="run the notebooks first")
    given = parser.parse_args()
    status = build(given.out, pictures=given.pictures)
    print(f"{'written to' if not status else 'NOT as it should be:'} {given.out}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
