"""Templates: gaps are filled, lines with statements alone vanish, and a gap without a value is an error."""

import pytest
from jinja2 import UndefinedError

from tilewright.tools.templates import render


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "page.md.j2"
    path.write_text("# {{ title }}\n{% for each in rows %}\n- {{ each }} & <b>\n{% endfor %}\n\nEnd.\n")
    return path


def test_a_template_is_filled_as_it_stands(template):
    assert render(template, title="Ranges < 2", rows=("a", "b")) == "# Ranges < 2\n- a & <b>\n- b & <b>\n\nEnd.\n"


def test_a_gap_without_a_value_is_an_error(template):
    with pytest.raises(UndefinedError, match="title"):
        render(template, rows=())
