"""Integer networks of PULP's tools are computed as their own definitions say."""
