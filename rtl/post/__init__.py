"""Post-processing: requantisation, value tables, residuals, pooling."""
