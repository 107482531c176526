"""Jinja2 templates, which lie beside the modules that fill them."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

__all__ = ["render"]


def render(template: Path, **values: object) -> str:
    """Return the text of a template file, filled with ``values`` by name.

    Lines that hold nothing but a statement (``{% if … %}``) leave no line in the text.

    Raises
    ------
    jinja2.UndefinedError
        If the template has a gap without a value.
    """
    environment = Environment(loader=FileSystemLoader(template.parent), undefined=StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True, keep_trailing_newline=True, autoescape=False)
    return environment.get_template(template.name).render(values)
