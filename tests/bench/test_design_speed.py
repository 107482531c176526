"""Time of a design without values: a bound that a busy computer keeps, too."""

from tilewright.bench.design_speed import main, times
from tilewright.runtime.predicted_network import PredictedNetwork


def test_a_design_takes_a_fraction_of_a_second():
    network = PredictedNetwork.named("lenet5")
    list(times(network, ["nano"]))
    found = list(times(network, ["base", "large"]))
    assert all(each.seconds < 1 for each in found), found
    assert found[0].cycles > found[1].cycles > 0


def test_the_command_names_each_design(capsys):
    main(["lenet5", "--machine", "large"])
    shown = capsys.readouterr().out
    assert shown.startswith("lenet5: ")
    assert "large: " in shown
