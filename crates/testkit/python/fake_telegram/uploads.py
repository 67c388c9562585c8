"""What a bot sends besides text."""

from . import text
from .media import KINDS, PHOTO_SIZES
from .refusal import bad

LONGEST_CAPTION = 1024
BIGGEST_PHOTO = 10 * 1000 * 1000
PICTURES = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF")


def uploaded(world, field, kind):
    """The media field of a message with a file that came in a form."""
    if not hasattr(field, "file"):
        raise bad(f"there is no {kind} in the request")
    content = field.file.read()
    if not content:
        raise bad("file must be non-empty")
    given = {"content": content, "file_name": field.filename, "mime_type": field.content_type}
    if kind == "photo":
        if len(content) > BIGGEST_PHOTO or not content.startswith(PICTURES):
            raise bad("IMAGE_PROCESS_FAILED")
        return [
            {"width": width, "height": height, **store(world, "photos/file_{n}.jpg", given)}
            for width, height in PHOTO_SIZES
        ]
    fields, path = KINDS[kind]
    file = {**fields, **store(world, path, given), "mime_type": given["mime_type"]}
    if kind in ("document", "audio", "video", "animation"):
        file["file_name"] = given["file_name"]
    return file


def store(world, path, given):
    number = len(world.files) + 1
    size = len(given["content"])
    raw = {"file_id": f"BQAC{number:040}", "file_unique_id": f"AgAD{number:012}", "file_size": size}
    world.files[raw["file_id"]] = {"raw": raw, "path": path.format(n=number), "content": given["content"]}
    return raw


def caption(given, entities):
    """The caption of a message, if there is one."""
    if not given.get("caption"):
        return {}
    words, kept = text.prepared(given["caption"], entities)
    if len(words.encode("utf-16-le")) // 2 > LONGEST_CAPTION:
        raise bad("message caption is too long")
    return {"caption": words} | ({"caption_entities": kept} if kept else {})
