"""`python -m jaxbounds` is the command `jaxbounds`."""

import sys

from jaxbounds.cli import main

if __name__ == "__main__":
    sys.exit(main())
