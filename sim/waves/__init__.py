"""Waveforms of the RTL engine: what is asked for, the file, and what a viewer shows of it at first."""
