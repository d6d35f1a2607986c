"""Sphinx configuration of the gallery; ``tools/build_gallery.py`` writes the pages it reads."""

from importlib.metadata import version as installed_version

project = "Capability scaling toolkit"
author = "The capability-scaling-toolkit developers"
copyright = "2026, " + author
version = release = installed_version("capability-scaling-toolkit")

extensions = ["myst_nb", "sphinx_design"]
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

exclude_patterns = ["originals"]  # what the download links lead to

nb_execution_mode = "off"  # the notebooks were run before
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # its default is a server on the internet
nb_merge_streams = True

mathjax_path = "mathjax/tex-chtml-full.js"
mathjax3_config = {"tex": {"tags": "none"}}

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_show_sphinx = False
html_copy_source = False
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": project},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
