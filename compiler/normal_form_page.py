"""Render the manual page docs/normal-form.md: the normal form of quantised models, its rules, the passes behind it."""

from pathlib import Path

from tilewright.compiler.normal.rules.legal import ILLEGAL
from tilewright.compiler.normal.rules.normal_form import FORMS, RULES, SHAPED_RULES
from tilewright.compiler.passes.pass_order import PASSES
from tilewright.tools.templates import render

__all__ = ["page"]

_TEMPLATE = Path(__file__).with_name("normal_form_page.md.j2")


def page() -> str:
    """Return the page's text."""
    return render(_TEMPLATE, rules=RULES, forms=", ".join(rule.name for rule in FORMS), shaped=SHAPED_RULES,
                  illegal=[says for says, _ in ILLEGAL],
                  passes=[(each.name, each.says.replace("``", "`").rstrip(".")) for each in PASSES])


if __name__ == "__main__":
    print(page(), end="")
