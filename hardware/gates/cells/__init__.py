"""Figures of a process made from its sources: static RAM by CACTI, standard cells by circuit simulation."""
