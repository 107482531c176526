"""Tables of ``tilewright card``: one for each model in the terminal, and one of all models in Markdown."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tilewright.cli.tables.text import plain
from tilewright.runtime.card.model_card import CardCost, ModelCard
from tilewright.tools.fitted_table import FittedTable
from tilewright.tools.markdown import digits, percent, table

__all__ = ["card_table", "cards_markdown", "print_notes"]

_NAMED = 3
"""Operators of the core that are named."""


def card_table(card: ModelCard) -> Table:
    """Return the table of a model: a row for each design."""
    found = FittedTable(title=plain(_title(card)))
    found.column("design", least=6)
    found.column("cycles", number=True)
    found.column("ms", number=True)
    found.column("energy,\nµJ", number=True)
    found.column("weights,\nbytes", number=True, goes=3)
    found.column("working\nmemory", number=True, goes=2)
    found.column("bus,\nbytes", number=True, goes=1)
    found.column("core", number=True)
    found.column("on the core", least=12)
    for cost in card.costs:
        found.add_row(plain(cost.machine), *_figures(cost), "refused" if cost.refused else plain(_core(cost)))
    return found


def print_notes(card: ModelCard, out: Console) -> None:
    """Print why it is refused, at which clock the times are, and where the ranges of a float model come from."""
    for sentence in dict.fromkeys(cost.refused for cost in card.costs if cost.refused):
        designs = ", ".join(cost.machine for cost in card.costs if cost.refused == sentence)
        out.print(plain(f"{card.model} is refused on {designs}: {sentence}"), highlight=False, soft_wrap=True)
    clocks = {f"{cost.clock_mhz:g} MHz" for cost in card.costs if not cost.refused}
    if clocks:
        out.print(f"time at {', '.join(sorted(clocks))}; cycles and energy predicted, only outputs stored",
                  highlight=False, soft_wrap=True)
    for note in card.notes:
        out.print(plain(f"note: {note}"), highlight=False, soft_wrap=True)


def cards_markdown(cards: Sequence[ModelCard]) -> str:
    """Return one table in Markdown with a row for each model and design."""
    heads = ("network", "design", "cycles", "ms", "energy, µJ", "weights, bytes", "working memory", "bus, bytes",
             "core", "on the core, or why refused")
    return table(heads, ([_title(card), cost.machine, *_figures(cost), cost.refused or _core(cost)]
                         for card in cards for cost in card.costs), left=2)


def _title(card: ModelCard) -> str:
    parts = [card.model, *([f"{digits(card.macs / 1e6)} M MACs"] if card.macs else [])]
    if card.accuracy is not None:
        before = "" if card.float_accuracy is None else f", float {percent(card.float_accuracy, 2)}"
        parts.append(f"accuracy {percent(card.accuracy, 2)} of {card.images} images{before}")
    return ", ".join(parts)


def _figures(cost: CardCost) -> list[str]:
    if cost.refused:
        return ["–"] * 7
    return [f"{cost.cycles:,}", digits(cost.milliseconds), digits(cost.energy_uj), f"{cost.weight_bytes:,}",
            f"{cost.working_bytes:,}", f"{cost.bus_bytes:,}", percent(cost.core_share, 1)]


def _core(cost: CardCost) -> str:
    more = len(cost.core_operators) - _NAMED
    return ", ".join(cost.core_operators[:_NAMED]) + (f" and {more} more" if more > 0 else "")
