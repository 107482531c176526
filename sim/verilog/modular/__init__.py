"""From an elaborated design to RTLIL of one module for each kind of block, with the names of the Amaranth source."""
