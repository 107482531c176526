"""Pictures of the documentation that show measurements: rooflines and fronts, from reports and explorations."""
