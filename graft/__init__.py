"""Grafts the overlay in `keras/` onto an upstream Keras release."""

FORK_VERSION = "bf16.1"
