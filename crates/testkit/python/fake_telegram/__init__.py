"""A stand-in for the Telegram Bot API; see `__main__` for what it offers."""
