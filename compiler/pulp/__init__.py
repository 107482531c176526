"""Integer networks of PULP's tools, Deeploy, DORY, NEMO and MATCH: sums that are multiplied, shifted and bounded."""
