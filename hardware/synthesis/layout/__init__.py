"""A placement of a netlist of standard cells, and the wires that it asks for."""
