"""Makes the oracle importable: a package of its own, that shares no code with the rules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
