"""Passes that bring quantised operators into the forms that the datapath has."""
