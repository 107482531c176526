"""The page of an exploration: figures, a table and sentences, from data that know nothing of the search."""
