"""wechatpy uses an app: python wecom_client.py URL CORP_ID SECRET AGENT_ID USER ASKED, which is JSON:

  {"read": [media_id], "send": [{"kind", "name", "content"}], "callbacks": [xml]}

Prints what it read (`name`, `content`), the ids of the messages it sent, and of each callback what
wechatpy understands: `type` and `media_id`.
"""

import base64
import io
import json
import os
import sys
from email.message import Message

from requests.adapters import HTTPAdapter
from wechatpy.enterprise import WeChatClient, parse_message

URL, CORP_ID, SECRET, AGENT_ID, USER, ASKED = sys.argv[1:7]
os.environ["NO_PROXY"] = "*"
send_to_wecom = HTTPAdapter.send


def send_to_the_stand_in(adapter, request, **kwargs):
    """Its addresses are fixed, and some calls do not use its session."""
    request.url = request.url.replace("https://qyapi.weixin.qq.com", URL)
    return send_to_wecom(adapter, request, **kwargs)


HTTPAdapter.send = send_to_the_stand_in


def read(client, media_id):
    answer = client.media.download(media_id)
    answer.raise_for_status()
    named = Message()
    named["content-disposition"] = answer.headers["content-disposition"]
    return {"name": named.get_filename(), "content": base64.b64encode(answer.content).decode()}


def send(client, file):
    kind, bytes_of = file["kind"], io.BytesIO(base64.b64decode(file["content"]))
    media_id = client.media.upload(kind, (file["name"], bytes_of))["media_id"]
    return getattr(client.message, f"send_{kind}")(AGENT_ID, USER, media_id)["msgid"]


def understood(xml):
    message = parse_message(xml)
    return {"type": message.type, "media_id": getattr(message, "media_id", None)}


asked = json.loads(ASKED)
client = WeChatClient(CORP_ID, SECRET)
print(
    json.dumps(
        {
            "read": [read(client, one) for one in asked.get("read", [])],
            "sent": [send(client, one) for one in asked.get("send", [])],
            "callbacks": [understood(one) for one in asked.get("callbacks", [])],
        }
    )
)
