"""What axe-core finds wrong with a page for readers who cannot see it, or use no mouse."""

from typing import Any

import pytest

__all__ = ["grave_findings"]

_GRAVE = ("serious", "critical")


def grave_findings(shown: Any) -> list[str]:
    """Return the serious and critical findings of axe-core on playwright's page, each with where it is.

    The wheel axe-playwright-python carries axe-core and is pinned in pyproject.toml; a test is skipped without it.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright",
                              reason="axe-core is not installed: pip install -e .[dev]")
    found = axe.Axe().run(shown).response["violations"]
    return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found if each["impact"] in _GRAVE
            for node in each["nodes"]]
