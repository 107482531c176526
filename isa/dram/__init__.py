"""DRAM behind the bus: parts by their data sheets, and their times at a clock."""
