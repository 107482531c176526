"""Area of a machine before it is synthesised: counts that follow from its parameters, and a fit to synthesised ones."""
