"""The normal form of quantised models: one form for whatever a quantiser writes."""
