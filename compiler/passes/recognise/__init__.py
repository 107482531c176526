"""Passes that turn ONNX operators into quantised ones."""
