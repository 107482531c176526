"""Results as tables for a person; the packages that compute them know no tables."""
