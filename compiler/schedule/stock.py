"""What is loaded of one kind: regions of a ring, taken in the order of the steps that need them."""

from dataclasses import dataclass, field

from tilewright.compiler.schedule.rings import Region, Ring
from tilewright.compiler.schedule.steps import Need


@dataclass(slots=True)
class Stock:
    """What is loaded of one kind: a ring, the needs in order, and the regions of those in use."""

    ring: Ring
    needs: tuple[Need, ...]
    loaded: int = 0
    regions: dict[int, Region] = field(default_factory=dict)
    served: int = 0
    recent: list[Region] = field(default_factory=list)

    def current(self, step: int) -> Region | None:
        """Return the region that ``step`` uses, if it has such a need."""
        return next((self.regions[i] for i in range(self.served, self.loaded)
                     if self.needs[i].first <= step <= self.needs[i].last), None)

    def due(self, step: int) -> bool:
        """Tell whether the next need not yet loaded is one of ``step``."""
        return self.loaded < len(self.needs) and self.needs[self.loaded].first <= step

    def take(self, size: int, *, ahead: bool = False, around: bool = False) -> Region | None:
        """Allocate for the next need; None while the room is taken, or with ``ahead`` also if the latest step uses it.

        A load ahead of time must not wait for the array, because those behind it would wait too. With ``around``
        it goes behind regions that stay taken.
        """
        region = self.ring.allocate(size, but=self.recent if ahead else (), around=around)
        if region is not None:
            self.regions[self.loaded] = region
            self.loaded += 1
        return region

    def release(self, step: int) -> None:
        """Give back what no step after ``step`` uses."""
        self.recent.clear()
        while self.served < self.loaded and self.needs[self.served].last <= step:
            region = self.regions.pop(self.served)
            self.ring.release(region)
            self.recent.append(region)
            self.served += 1
