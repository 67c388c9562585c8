"""What Discord refuses in a form, in its own words."""

from simcord.backend import errors
from simcord.backend.errors import BackendError

#: Characters of a message.
CONTENT_LIMIT = 2000


def form_error(field, code, message):
    return errors.invalid_form_body(errors={field: {"_errors": [{"code": code, "message": message}]}})


def empty_message():
    return BackendError(400, 50006, "Cannot send an empty message")


def check_content(body):
    content = body.get("content")
    if content is not None and not isinstance(content, str):
        raise form_error("content", "STRING_TYPE_CONVERT", f"Could not interpret {content!r} as string.")
    if len(content or "") > CONTENT_LIMIT:
        raise form_error("content", "BASE_TYPE_MAX_LENGTH", f"Must be {CONTENT_LIMIT} or fewer in length.")


def check_edit(body):
    check_content(body)
    if "content" in body and not (body["content"] or "").strip() and not body.get("embeds"):
        raise empty_message()
