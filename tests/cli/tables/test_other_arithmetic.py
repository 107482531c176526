"""``compare --reference`` on a .tflite file: advice on whose arithmetic ours is in, if that makes the difference."""

import io

import pytest
from rich.console import Console

from tilewright.cli.compare import ReferenceName, arithmetic_advice
from tilewright.cli.options.model_state import TfliteEngine
from tilewright.cli.tables.comparison_tables import print_reference
from tilewright.runtime.compare.other_references import ReferenceComparison, Start
from tilewright.runtime.execution.verdict import TensorVerdict

OFF = Start(0, "dense", ("FULLY_CONNECTED",), (), TensorVerdict(kind="differs", elements=10, off=1, levels=1))


def said(start, advice):
    text = io.StringIO()
    found = ReferenceComparison(model="net", origin="noise", reference="tflm", layers=(), outputs=(), start=start)
    print_reference(found, Console(file=text, width=80), advice)
    return text.getvalue()


def test_advice_names_the_option_that_gives_the_reference_s_own_values():
    advice = arithmetic_advice(ReferenceName.tflm, None)
    assert "--arithmetic tflm" in advice
    assert advice in said(OFF, advice)
    assert advice not in said(None, advice)


@pytest.mark.parametrize(("reference", "arithmetic"), [
    (ReferenceName.tflm, TfliteEngine.tflm), (ReferenceName.litert, None), (ReferenceName.default, None)])
def test_there_is_none_where_ours_is_that_arithmetic_already(reference, arithmetic):
    assert not arithmetic_advice(reference, arithmetic)
