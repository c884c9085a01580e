"""Settings of Sphinx for the documentation site; `python .github/site FOLDER` uses them."""

import os
import sys
from pathlib import Path

from jaxbounds import __version__

sys.path.insert(0, str(Path(__file__).parent))
os.environ["JAXBOUNDS_FAST"] = "1"  # of notebooks that are run

project = "jaxbounds"
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "extension"]

html_theme = "furo"
html_title = "jaxbounds"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "scorer.js")
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "code"
highlight_language = "none"
smartquotes = False  # quotes in a sentence may be code
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
nitpick_ignore_regex = [("py:.*", r"(?!jaxbounds\.\w+$).*")]
"""A reference to a public name must be there; a type of another library has no page here."""
