# Constraints for AMD 7-series (Vivado): a template. Replace clock, period and pins by your board's.

# The clock, in ns; see README.md for what to expect.
create_clock -name clk -period 10.000 [get_ports clk]
set_property -dict {PACKAGE_PIN E3 IOSTANDARD LVCMOS33} [get_ports clk]
{% if bus == "axi4-own-clock" %}

# The bus, in its own clock: Gray-coded pointers cross, each within the shorter period.
create_clock -name bus_clk -period 7.000 [get_ports bus_clk]
set_max_delay -datapath_only -from [get_clocks clk] -to [get_clocks bus_clk] 7.000
set_max_delay -datapath_only -from [get_clocks bus_clk] -to [get_clocks clk] 7.000
{% endif %}

# Reset from a button. It is synchronous: bring it to the clock through two registers first.
set_property -dict {PACKAGE_PIN C2 IOSTANDARD LVCMOS33} [get_ports rst]
set_false_path -from [get_ports rst]

# The module's other ports belong inside the FPGA. To look at its timing alone (synth_design -mode out_of_context), say
# when they come and must be there:
# set_input_delay  -clock clk 5.000 [remove_from_collection [all_inputs] [get_ports clk]]
# set_output_delay -clock clk 5.000 [all_outputs]

# The windows are set before the first command, and steady: they need not meet the clock.
# set_false_path -from [get_ports {window*}]
