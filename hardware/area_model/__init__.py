"""Area of a machine before synthesis: counts from its parameters, and a fit to synthesised machines."""
