"""The notebooks of `colab/`, as pages; their first cell of code stays shut until it is opened."""

import json
from pathlib import Path


def write_notebooks(source: Path, folder: Path, /) -> list[str]:
    """Copy the notebooks, with a label before the title and the first code hidden.

    Args:
        source: the folder of the notebooks.
        folder: where the pages go.

    Returns:
        The names of the notebooks, in their order.
    """
    names = []
    for file in sorted(source.glob("*.ipynb")):
        book = json.loads(file.read_text(encoding="utf8"))
        first = next(cell for cell in book["cells"] if cell["cell_type"] == "code")
        first["metadata"]["tags"] = ["hide-input"]
        book["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "python3"}
        title = book["cells"][0]
        title["source"] = f"(book-{file.stem})=\n{''.join(title['source'])}"
        (folder / file.name).write_text(json.dumps(book), encoding="utf8")
        names.append(file.stem)
    return names
