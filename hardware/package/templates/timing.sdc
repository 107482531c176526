# Constraints for static timing of a netlist (OpenSTA): a template. Replace period and cells by your process's.
#   read_liberty cells.lib; read_verilog netlist.v; link_design tilewright_coprocessor; read_sdc timing.sdc; report_checks

# The clock, in the library's unit of time (here ns), with a margin for jitter and skew.
set period 10.0
create_clock -name clk -period $period [get_ports clk]
set_clock_uncertainty [expr 0.05 * $period] [get_clocks clk]

# Half a period for what is outside; nothing between an input and an output passes without a register but handshakes.
set inputs [list]
foreach port [all_inputs] {
  if {[get_property $port full_name] != "clk"} { lappend inputs $port }
}
set_input_delay  [expr 0.5 * $period] -clock clk $inputs
set_output_delay [expr 0.5 * $period] -clock clk [all_outputs]
set_input_transition 0.2 $inputs
set_load 0.05 [all_outputs]
{% if windows == "pins" %}

# The windows are set before the first command, and steady.
set_false_path -from [get_ports window*]{% endif %}
