"""A stand-in for WeCom."""
