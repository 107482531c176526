"""Running programs: sessions, reports and the command line."""
