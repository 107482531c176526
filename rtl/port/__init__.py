"""The command port: CV-X-IF, queues, semaphores, windows, counters."""
