"""What people send besides text."""

import base64
import hashlib

DEFAULT_CONTENT = b"the content of a file"

# Fields of each kind besides the file's own, and what its file is called.
KINDS = {
    "voice": ({"duration": 3, "mime_type": "audio/ogg"}, "voice/file_{n}.oga"),
    "document": ({"file_name": "notes.pdf", "mime_type": "application/pdf"}, "documents/file_{n}.pdf"),
    "video": ({"width": 640, "height": 360, "duration": 5, "mime_type": "video/mp4"}, "videos/file_{n}.mp4"),
    "audio": ({"duration": 120, "mime_type": "audio/mpeg", "title": "Song"}, "music/file_{n}.mp3"),
    "animation": ({"width": 320, "height": 240, "duration": 2, "mime_type": "video/mp4"}, "animations/file_{n}.mp4"),
    "video_note": ({"length": 240, "duration": 4}, "video_notes/file_{n}.mp4"),
    "sticker": (
        {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False, "emoji": "👍"},
        "stickers/file_{n}.webp",
    ),
}
PHOTO_SIZES = [(90, 60), (320, 213), (1280, 853)]
# These have no file; what is given is sent as it is, or this.
PLAIN = {
    "location": {"latitude": 48.2, "longitude": 16.37},
    "contact": {"phone_number": "+15550100", "first_name": "Ann"},
    "venue": {"location": {"latitude": 48.2, "longitude": 16.37}, "title": "Café", "address": "Main Street 1"},
    "dice": {"emoji": "🎲", "value": 4},
}


def content_of(world, ask):
    """The media fields of a message that somebody sends."""
    content = {}
    for kind, usual in PLAIN.items():
        if ask.get(kind):
            content[kind] = ask[kind] if isinstance(ask[kind], dict) else usual
    for kind, (fields, path) in KINDS.items():
        if ask.get(kind):
            given = ask[kind] if isinstance(ask[kind], dict) else {}
            content[kind] = {**fields, **new_file(world, path, given)}
    if ask.get("photo"):
        given = ask["photo"] if isinstance(ask["photo"], dict) else {}
        content["photo"] = [
            {"width": width, "height": height, **new_file(world, "photos/file_{n}.jpg", given)}
            for width, height in PHOTO_SIZES
        ]
    if "animation" in content:
        # Telegram says it twice, for clients that know no animations.
        keys = ("file_id", "file_unique_id", "file_size", "mime_type")
        content["document"] = {key: content["animation"][key] for key in keys}
    if content and ask.get("album"):
        content["media_group_id"] = str(ask["album"])
    return content


def new_file(world, path, given):
    number = len(world.files) + 1
    content = base64.b64decode(given["content"]) if "content" in given else DEFAULT_CONTENT
    mark = hashlib.sha256(f"{world.bot['id']}:{number}".encode()).hexdigest()
    size = given.get("file_size", len(content))
    raw = {"file_id": f"AgAC{mark[:40]}", "file_unique_id": f"AQAD{mark[40:52]}", "file_size": size}
    world.files[raw["file_id"]] = {"raw": raw, "path": path.format(n=number), "content": content}
    return {**raw, **{key: value for key, value in given.items() if key not in ("content", "file_size")}}
