"""Twilio's own library lists the files of messages: python twilio_reader.py URL ACCOUNT TOKEN MESSAGE...

Prints one JSON object: of each message its files, with the type, where each is, and its bytes if Twilio
keeps it. The library names a file and leaves the download to requests, which it is made of.
"""

import base64
import json
import sys

import requests
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

URL, ACCOUNT, TOKEN, *MESSAGES = sys.argv[1:]


class StandIn(TwilioHttpClient):
    """Takes every request to the stand-in instead of to Twilio."""

    def request(self, method, url, *args, **kwargs):
        return super().request(method, url.replace("https://api.twilio.com", URL), *args, **kwargs)


def content(uri):
    if not uri.startswith("/"):
        return None
    auth = (ACCOUNT, TOKEN)
    found = requests.get(URL + uri.removesuffix(".json"), auth=auth, timeout=30, allow_redirects=False)
    # requests leaves the credential behind where Twilio's files are; the stand-in has both on one host.
    answer = requests.get(found.headers["location"], timeout=30)
    answer.raise_for_status()
    return base64.b64encode(answer.content).decode()


def files(client, message):
    listed = client.messages(message).media.list()
    return [{"type": one.content_type, "uri": one.uri, "content": content(one.uri)} for one in listed]


client = Client(ACCOUNT, TOKEN, http_client=StandIn())
print(json.dumps({message: files(client, message) for message in MESSAGES}))
