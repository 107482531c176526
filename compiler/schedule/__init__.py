"""Schedules: commands in order, regions of buffers, semaphores, and the proof that no access races."""
