"""An identity issuer for tests: PyJWT and cryptography make its keys and tokens.

Prints its port on the first line, then serves until it is killed:

  GET  /jwks         the public keys in force
  GET  /jwks/count   how often they were fetched
  POST /keys         {"kid", "alg"}: makes a key and publishes it
  POST /sign         {"claims", "kid", "alg"?, "header"?}: signs claims with a key
  POST /forge        {"claims", "kid", "how"}: a token that must not be taken
  GET  /account      tells whose a bearer is, as an account service does
  POST /account      {"bearer", "answer"}: what it tells of one
"""

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

KEYS = {}
FETCHED = [0]
ACCOUNTS = {}


def make_key(alg):
    if alg == "RS256":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    if alg == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def public_jwk(kid):
    alg, key = KEYS[kid]
    algorithm = jwt.get_algorithm_by_name(alg)
    jwk = json.loads(algorithm.to_jwk(key.public_key()))
    jwk.update(kid=kid, alg=alg, use="sig")
    jwk.pop("key_ops", None)
    return jwk


def sign(ask):
    alg, key = KEYS[ask["kid"]]
    header = {"kid": ask["kid"], **ask.get("header", {})}
    header = {name: value for name, value in header.items() if value is not None}
    return jwt.encode(ask["claims"], key, algorithm=ask.get("alg", alg), headers=header)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forge(ask):
    """Tokens as attackers make them."""
    claims, kid, how = ask["claims"], ask["kid"], ask["how"]
    alg, key = KEYS[kid]
    payload = b64(json.dumps(claims).encode())
    if how == "none":
        return b64(json.dumps({"alg": "none", "typ": "JWT", "kid": kid}).encode()) + "." + payload + "."
    if how == "public-key-as-hmac":
        # The oldest trick: sign with the public key as if it were a shared secret.
        pem = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        import hashlib
        import hmac

        head = b64(json.dumps({"alg": "HS256", "typ": "JWT", "kid": kid}).encode())
        mac = hmac.new(pem, f"{head}.{payload}".encode(), hashlib.sha256).digest()
        return f"{head}.{payload}.{b64(mac)}"
    if how == "own-key":
        return jwt.encode(claims, make_key(alg), algorithm=alg, headers={"kid": kid})
    if how == "embedded-key":
        own = make_key(alg)
        jwk = json.loads(jwt.get_algorithm_by_name(alg).to_jwk(own.public_key()))
        return jwt.encode(claims, own, algorithm=alg, headers={"kid": kid, "jwk": jwk, "jku": "http://evil"})
    if how == "altered":
        head, _, signature = sign(ask).split(".")
        claims = {**claims, "tid": "somebody-else"}
        return ".".join([head, b64(json.dumps(claims).encode()), signature])
    if how == "no-signature":
        return ".".join(sign(ask).split(".")[:2]) + "."
    if how == "renamed-alg":
        token = sign(ask)
        head = {"alg": "ES256" if alg != "ES256" else "RS256", "typ": "JWT", "kid": kid}
        return b64(json.dumps(head).encode()) + "." + token.split(".", 1)[1]
    raise ValueError(how)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/jwks":
            FETCHED[0] += 1
            # A key of a sort nobody knows must not hide the others.
            strange = {"kty": "XYZ", "kid": "strange"}
            return self.answer({"keys": [strange] + [public_jwk(kid) for kid in KEYS]})
        if self.path == "/jwks/count":
            return self.answer({"count": FETCHED[0]})
        if self.path == "/account":
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            known = ACCOUNTS.get(bearer)
            return self.answer(known, 200) if known else self.answer({"error": "unknown"}, 401)
        return self.answer({"error": "not found"}, 404)

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/keys":
            KEYS[ask["kid"]] = (ask["alg"], make_key(ask["alg"]))
            return self.answer({})
        if self.path == "/sign":
            return self.answer({"token": sign(ask)})
        if self.path == "/forge":
            return self.answer({"token": forge(ask)})
        if self.path == "/account":
            ACCOUNTS[ask["bearer"]] = ask["answer"]
            return self.answer({})
        return self.answer({"error": "not found"}, 404)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
sys.stdout.close()
server.serve_forever()
