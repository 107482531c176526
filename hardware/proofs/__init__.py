"""Proofs about the gateware: properties in SystemVerilog, proved by Yosys and an SMT solver; docs/proofs.md."""
