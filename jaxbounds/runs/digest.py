"""The state of the library's source, and the folder of what is kept for it; neither needs JAX."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path


def cache_folder() -> Path:
    """Of compiled programs, traces, examples and texts."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "jaxbounds" / "xla"


def digest_of(imports: Iterable[str], /) -> str:
    """Of the package's source, and of the imported files'."""
    package, state = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        state.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    for path in map(Path, imports):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path] * path.is_file():
            state.update(file.read_bytes())
    return state.hexdigest()
