"""A stand-in for Discord that real clients accept; `control.py` says how tests drive it."""
