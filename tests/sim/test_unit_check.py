"""The component of an extension's unit against its NumPy function, under back-pressure."""

from pathlib import Path

import pytest

from tilewright.isa.extension import ExtensionError, load_extension
from tilewright.sim.unit_check import UnitDifference, check_unit

ARGMAX = Path(__file__).parents[2] / "examples/extensions/argmax.py"


def changed(tmp_path, old, new):
    text = ARGMAX.read_text()
    assert old in text
    path = tmp_path / "argmax.py"
    path.write_text(text.replace(old, new))
    return load_extension(path)


def test_the_example_computes_the_same_in_both():
    assert check_unit(load_extension(ARGMAX), items=6).items == 2 * 6 * 12


@pytest.mark.parametrize(("old", "new"), [
    ("other[0] > one[0]", "other[0] >= one[0]"),                            # the last of several
    ("~self.o.valid | self.o.ready", "1"),                                  # overwrites what is held up
    ("LATENCY = 2", "LATENCY = 3"),
    ("self.o.valid.eq(comes & last)", "self.o.valid.eq(comes)"),            # a result for each word
    ("self.i.ready.eq(go)", "self.i.ready.eq(0)"),                          # takes nothing
    ("with m.If(place < word.count):", "with m.If(1):"),                    # reads on behind the item
])
def test_a_component_that_does_otherwise_is_found(tmp_path, old, new):
    with pytest.raises(UnitDifference):
        check_unit(changed(tmp_path, old, new), items=12)


@pytest.mark.parametrize(("old", "new"), [
    ('"i": In(stream.Signature(word)),', '"i": In(stream.Signature(word)), "more": In(1),'),
    ("super().__init__({", "raise ValueError\n        super().__init__({"),
    ("return found.astype(np.uint8).view(np.int8)[:, None]", "return found[:, None]"),
])
def test_what_breaks_the_contract_is_refused(tmp_path, old, new):
    with pytest.raises(ExtensionError):
        check_unit(changed(tmp_path, old, new), items=2)
