"""What the API answers when it does not do what was asked."""


class Refusal(Exception):
    """An error answer: status, description and, where Telegram adds them, parameters."""

    def __init__(self, status, description, **parameters):
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    def body(self):
        body = {"ok": False, "error_code": self.status, "description": self.description}
        if self.parameters:
            body["parameters"] = self.parameters
        return body


class Violation(Exception):
    """Something that aiogram's models do not take, ours or the client's: always a bug."""


def bad(text):
    return Refusal(400, f"Bad Request: {text}")


def forbidden(text):
    return Refusal(403, f"Forbidden: {text}")


def too_many(seconds):
    return Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
