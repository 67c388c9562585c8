"""PyNaCl and discord-interactions, one question a line; bytes are in hex.

{"sign": {"seed", "timestamp", "body"}}                 {"key", "signature"}
{"judge": {"key", "signature", "timestamp", "body"}}    {"nacl": bool, "interactions": bool}

The signature to judge is the header, so it is text in hex twice.
"""

import contextlib
import io
import json
import sys

from discord_interactions import verify_key
from nacl.signing import SigningKey, VerifyKey


def sign(ask):
    key = SigningKey(bytes.fromhex(ask["seed"]))
    signature = key.sign(bytes.fromhex(ask["timestamp"]) + bytes.fromhex(ask["body"])).signature
    return {"key": key.verify_key.encode().hex(), "signature": signature.hex().encode().hex()}


def nacl(key, signature, timestamp, body):
    try:
        VerifyKey(bytes.fromhex(key)).verify(timestamp + body, bytes.fromhex(signature.decode()))
        return True
    except Exception:  # whatever it says, it did not accept
        return False


def interactions(key, signature, timestamp, body):
    # It prints its complaints, and takes headers only as text.
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return verify_key(body, signature.decode(), timestamp.decode(), key)
        except UnicodeDecodeError:
            return False


def judge(ask):
    given = [bytes.fromhex(ask[name]) for name in ("signature", "timestamp", "body")]
    return {"nacl": nacl(ask["key"], *given), "interactions": interactions(ask["key"], *given)}


for line in sys.stdin:
    question = json.loads(line)
    answer = sign(question["sign"]) if "sign" in question else judge(question["judge"])
    print(json.dumps(answer), flush=True)
