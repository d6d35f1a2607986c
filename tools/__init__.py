"""Tools for authors of notebooks and for the gallery; not part of the installed package."""
