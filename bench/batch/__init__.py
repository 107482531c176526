"""What batches save."""
