# Constraints for static timing of a netlist (OpenSTA): a template. Replace period and cells by your process's.
#   read_liberty cells.lib; read_verilog netlist.v; link_design tilewright_coprocessor; read_sdc timing.sdc; report_checks

# The clock, in the library's unit of time (here ns), with a margin for jitter and skew.
set period 10.0
create_clock -name clk -period $period [get_ports clk]
set_clock_uncertainty [expr 0.05 * $period] [get_clocks clk]

# Half a period for what is outside; nothing between an input and an output passes without a register but handshakes.
set inputs [list]
foreach port [all_inputs] {
  if {[lsearch {clk bus_clk} [get_property $port full_name]] < 0} { lappend inputs $port }
}
set_input_delay  [expr 0.5 * $period] -clock clk $inputs
set_output_delay [expr 0.5 * $period] -clock clk [all_outputs]
set_input_transition 0.2 $inputs
set_load 0.05 [all_outputs]
{% if bus == "axi4-own-clock" %}

# The bus, in its own clock. Gray-coded pointers cross: keep a path between the clocks below the shorter period in place and route.
create_clock -name bus_clk -period 7.0 [get_ports bus_clk]
set_clock_groups -asynchronous -group clk -group bus_clk
set_input_delay  3.5 -clock bus_clk [get_ports {m_axi_*ready m_axi_r* m_axi_b*}]
set_output_delay 3.5 -clock bus_clk [get_ports {m_axi_a* m_axi_w*}]{% endif %}
{% if windows == "pins" %}

# The windows are set before the first command, and steady.
set_false_path -from [get_ports window*]{% endif %}
