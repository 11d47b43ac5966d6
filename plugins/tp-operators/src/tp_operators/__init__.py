"""The operator library of TensorPlay: one operator, one place. A family is imported when one of its names is used."""
__version__ = "0.1.0"
