"""The cost of main memory: runs with DRAM beside those with a fixed latency."""
