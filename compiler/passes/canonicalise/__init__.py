"""Passes that bring quantised operators into the forms of the datapath."""
