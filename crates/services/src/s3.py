"""A server with S3's protocol, moto's, that takes signed requests of one key only.

    python s3.py PORT FOLDER            serves; writes the key's name and secret to FOLDER/key
    python s3.py PORT FOLDER list       has another client, boto3, list what is in the bucket

What the key may do is what docs/operating.md says a key needs, and nothing else.
"""

import json
import pathlib
import socket
import sys

import boto3

BUCKET = "angelia"
# The key may look into it, and it is not there. Of any other bucket nobody is told as much.
MISSING = "missing"
RIGHTS = [
    {
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{MISSING}"],
    },
    {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": f"arn:aws:s3:::{BUCKET}/*",
    },
]


def client(service, port, key):
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
    )


def serve(port, folder):
    from moto import settings
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    # The server's own thread would keep it to itself that somebody else has the port.
    socket.create_server(("127.0.0.1", port)).close()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    anybody = ("anybody", "anybody")
    client("s3", port, anybody).create_bucket(Bucket=BUCKET)
    iam = client("iam", port, anybody)
    iam.create_user(UserName=BUCKET)
    policy = json.dumps({"Version": "2012-10-17", "Statement": RIGHTS})
    iam.put_user_policy(UserName=BUCKET, PolicyName="files", PolicyDocument=policy)
    made = iam.create_access_key(UserName=BUCKET)["AccessKey"]
    (folder / "key").write_text(f"{made['AccessKeyId']}\n{made['SecretAccessKey']}\n")
    # From here on every signature is checked, and every right.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    print("the bucket is ready", flush=True)
    server._thread.join()


def list_objects(port, folder):
    key = (folder / "key").read_text().split()
    pages = client("s3", port, key).get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    for page in pages:
        for found in page.get("Contents", []):
            print(found["Key"], found["Size"])


if __name__ == "__main__":
    port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    if sys.argv[3:] == ["list"]:
        list_objects(port, folder)
    else:
        serve(port, folder)
