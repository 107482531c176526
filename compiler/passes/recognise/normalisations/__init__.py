"""Normalisations that exporters took apart."""
