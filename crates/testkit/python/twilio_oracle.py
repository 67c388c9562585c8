"""Twilio's own validator, asked line by line.

Each line of input is a JSON object, each line of output the answer:
``sign`` makes the signature of a request, ``validate`` tells whether one is
good. Bodies come as base64 and are read as a web framework reads them.
"""

import base64
import json
import logging
import sys
from urllib.parse import parse_qsl

from twilio.request_validator import (
    SIGNATURE_SETTINGS_HEADER,
    RequestValidator,
    get_signature_algorithm,
)

# It warns of every algorithm it does not know.
logging.disable(logging.WARNING)
assert SIGNATURE_SETTINGS_HEADER == "X-Twilio-Webhooks-Signature-Settings"


class Form(dict):
    """The fields of a form, with every value a name has."""

    @classmethod
    def read(cls, body):
        form = cls()
        for name, value in parse_qsl(body, keep_blank_values=True, encoding="utf-8", errors="replace"):
            form.setdefault(name, []).append(value)
        return form

    def getlist(self, name):
        return self[name]


def parameters(ask):
    body = base64.b64decode(ask["body"]).decode("utf-8", "surrogateescape")
    return Form.read(body) if ask["form"] else body


def sign(ask):
    validator, url, params = RequestValidator(ask["secret"]), ask["url"], parameters(ask)
    if not ask["form"]:
        joint = "&" if "?" in url else "?"
        url = f"{url}{joint}bodySHA256={validator.compute_hash(params)}"
        params = {}
    signed = ask.get("signed_url", url) if ask["form"] else url
    algorithm = get_signature_algorithm(ask.get("settings"))
    return {"url": url, "signature": validator.compute_signature(signed, params, algorithm)}


def validate(ask):
    try:
        good = RequestValidator(ask["secret"]).validate(
            ask["url"], parameters(ask), ask["signature"], get_signature_algorithm(ask.get("settings"))
        )
    except Exception:  # pylint: disable=broad-except
        # What the validator cannot even read is not authentic.
        good = False
    return {"good": good}


for line in sys.stdin:
    question = json.loads(line)
    answer = {"sign": sign, "validate": validate}[question["do"]](question)
    print(json.dumps(answer), flush=True)
