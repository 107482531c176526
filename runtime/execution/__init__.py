"""One run: job, engine, records, accounting and report."""
