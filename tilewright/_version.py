"""The version of Tilewright, on its own so that any module can import it."""

__all__: list[str] = []

__version__ = "0.1.0"
