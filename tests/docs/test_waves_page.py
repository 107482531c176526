"""The page about waves lists the scopes that there are, as the options take them."""

import re

from tests.docs.pages import ROOT
from tilewright.sim.waves.scopes import DEFAULT_SCOPE, SCOPES


def test_the_table_has_every_scope_and_what_it_shows():
    text = (ROOT / "docs/waves.md").read_text(encoding="utf-8")
    table = text.partition("| scope | signals |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))
    (default,) = DEFAULT_SCOPE
    assert rows == {name: scope.about + "; this is the default" * (name == default) for name, scope in SCOPES.items()}
