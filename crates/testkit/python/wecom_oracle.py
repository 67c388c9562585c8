"""Signs, encrypts and judges callbacks with wechatpy, which nobody here wrote.

One JSON line in, one JSON line out, until the input ends:

  in   {"make": {"token", "key", "corp_id", "message", "nonce", "timestamp"}}
  out  {"encrypted", "signature"}

  in   {"judge": {"token", "key", "corp_id", "signature", "timestamp", "nonce", "encrypted"}}
  out  {"message"} or {"refused": name of the exception}
"""

import json
import sys

from wechatpy.enterprise.crypto import WeChatCrypto
from xmltodict import parse


def crypto(given):
    return WeChatCrypto(given["token"], given["key"], given["corp_id"])


def make(given):
    sealed = crypto(given).encrypt_message(given["message"], given["nonce"], given["timestamp"])
    sealed = parse(sealed)["xml"]
    return {"encrypted": sealed["Encrypt"], "signature": sealed["MsgSignature"]}


def judge(given):
    try:
        signed = (given["signature"], given["timestamp"], given["nonce"])
        return {"message": crypto(given).decrypt_message({"Encrypt": given["encrypted"]}, *signed)}
    except Exception as refused:  # noqa: BLE001
        return {"refused": type(refused).__name__}


for line in sys.stdin:
    asked = json.loads(line)
    answer = make(asked["make"]) if "make" in asked else judge(asked["judge"])
    print(json.dumps(answer), flush=True)
