"""Makes the checker importable: a package of its own, that knows nothing of the library."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
