"""Figures of cells as a Liberty file, in the subset that mapping, timing and power need (Liberty User Guide).

Units: nanoseconds, picofarads, volts, nanowatts; energies in picojoules (picofarad times volt squared).
"""

from collections.abc import Iterable, Mapping

from tilewright.hardware.gates.cells.characterise import LOADS, SLEWS, Edge, Grid, LogicFigures
from tilewright.hardware.gates.cells.flop import FlopFigures
from tilewright.hardware.gates.cells.sky130_cells import CORNER, FLIP_FLOP, LIBRARY, TEMPERATURE, VOLTAGE, Logic

__all__ = ["library_text"]

_SETUP, _HOLD = 0.10, 0.0
"""Nanoseconds, not characterised: a timing analysis needs some, and a tenth is usual in this process."""


_MOST = f"max_capacitance : {4 * LOADS[-1]:g};"


def library_text(logic: Mapping[Logic, LogicFigures], flop: FlopFigures) -> str:
    """Return the Liberty file."""
    axes = ['    variable_1 : input_{transition};', "    variable_2 : total_output_net_capacitance;",
            f'    index_1 ("{_list(SLEWS)}");', f'    index_2 ("{_list(LOADS)}");']
    delay = "\n".join(axes).format(transition="net_transition")
    power = "\n".join(axes).format(transition="transition_time")
    head = f"""\
/* {LIBRARY}, {CORNER}, {VOLTAGE} V, {TEMPERATURE} C, made by simulating transistor netlists without parasitics. */
library ({LIBRARY}_{CORNER}) {{
  delay_model : table_lookup;
  time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA"; pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1nW"; capacitive_load_unit (1, pf);
  nom_voltage : {VOLTAGE}; nom_temperature : {TEMPERATURE}; nom_process : 1;
  slew_lower_threshold_pct_rise : 20; slew_upper_threshold_pct_rise : 80;
  slew_lower_threshold_pct_fall : 20; slew_upper_threshold_pct_fall : 80;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  default_max_transition : 1.5; default_fanout_load : 1; default_output_pin_cap : 0;
  lu_table_template (delays) {{
{delay}
  }}
  power_lut_template (energies) {{
{power}
  }}
  power_lut_template (inputs) {{
    variable_1 : input_transition_time;
    index_1 ("{_list(SLEWS)}");
  }}
"""
    cells = [_logic(cell, figures) for cell, figures in logic.items()]
    return head + "".join([*cells, _flop(flop)]) + "}\n"


def _logic(cell: Logic, figures: LogicFigures) -> str:
    pins = []
    for name in cell.inputs:
        rise, fall = figures.hidden[name]
        own = _own_energy(rise, fall) if rise or fall else ""
        pins.append(_pin(name, "input", f"capacitance : {figures.capacitance[name]:.6g};", own))
    arcs = "".join(_timing(name, f"timing_sense : {figures.unateness[name]};", *edges)
                   + _energy(name, *edges) for name, edges in figures.edges.items())
    pins.append(_pin(cell.output, "output", f'function : "{cell.function}"; {_MOST}', arcs))
    return _cell(cell.name, figures.area, figures.leakage, pins)


def _flop(figures: FlopFigures) -> str:
    clock = "".join(_own_energy(*figures.clock[value], when="D" if value else "!D") for value in (0, 1))
    constraint = "".join(
        f"      timing () {{ related_pin : \"CLK\"; timing_type : {kind}_rising;\n"
        f"        rise_constraint (scalar) {{ values (\"{value}\"); }}\n"
        f"        fall_constraint (scalar) {{ values (\"{value}\"); }}\n"
        f"      }}\n" for kind, value in (("setup", _SETUP), ("hold", _HOLD)))
    pins = [
        "    ff (IQ, IQ_N) { clocked_on : \"CLK\"; next_state : \"D\"; }\n",
        _pin("CLK", "input", f"clock : true; capacitance : {figures.clock_capacitance:.6g};", clock),
        _pin("D", "input", f"capacitance : {figures.data_capacitance:.6g};", constraint + _own_energy(*figures.data)),
        _pin("Q", "output", f'function : "IQ"; {_MOST}',
             _timing("CLK", "timing_type : rising_edge; timing_sense : non_unate;", *figures.edges)
             + _energy("CLK", *figures.edges))]
    return _cell(FLIP_FLOP, figures.area, figures.leakage, pins)


def _cell(name: str, area: float, leakage: float, pins: Iterable[str]) -> str:
    return (f"  cell ({LIBRARY}__{name}) {{\n    area : {area:.6g}; cell_leakage_power : {leakage:.6g};\n"
            + "".join(pins) + "  }\n")


def _pin(name: str, direction: str, attributes: str, groups: str) -> str:
    return f"    pin ({name}) {{\n      direction : {direction}; {attributes}\n{groups}    }}\n"


def _timing(related: str, sense: str, rise: Edge, fall: Edge) -> str:
    return (f"      timing () {{ related_pin : \"{related}\"; {sense}\n"
            + _table("cell_rise", "delays", rise.delay) + _table("rise_transition", "delays", rise.slew)
            + _table("cell_fall", "delays", fall.delay) + _table("fall_transition", "delays", fall.slew) + "      }\n")


def _energy(related: str, rise: Edge, fall: Edge) -> str:
    return (f"      internal_power () {{ related_pin : \"{related}\";\n"
            + _table("rise_power", "energies", rise.energy) + _table("fall_power", "energies", fall.energy)
            + "      }\n")


def _own_energy(rise: float, fall: float, when: str = "") -> str:
    """Return what an input's rise and fall cost by themselves."""
    state = f' when : "{when}";' if when else ""
    return (f"      internal_power () {{{state}\n" + _table("rise_power", "inputs", ((rise,) * len(SLEWS),))
            + _table("fall_power", "inputs", ((fall,) * len(SLEWS),)) + "      }\n")


def _table(name: str, template: str, grid: Grid) -> str:
    rows = ", ".join(f'"{_list(row)}"' for row in grid)
    return f"        {name} ({template}) {{ values ({rows}); }}\n"


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
