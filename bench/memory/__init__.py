"""What main memory costs: runs with DRAM beside those with a fixed latency."""
