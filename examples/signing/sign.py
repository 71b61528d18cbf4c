#!/usr/bin/env python3
"""Sign one action and send it: sign.py --url URL --identity FILE KIND BODY

FILE is an identity as `deliberd agent new` writes it: {cluster, id, key}.
Needs the package "cryptography" for Ed25519.
"""
import argparse
import base64
import hashlib
import json
import os
import sys
import time
import urllib.request

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def canonical(value) -> bytes:
    """RFC 8785, for values without fractions: Python writes floats otherwise
    than RFC 8785 wants, so send fractions as the shortest decimal, like 0.9."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def ulid() -> str:
    n = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[n >> shift & 31] for shift in range(125, -1, -5))


def sign(identity: dict, kind: str, body: dict) -> dict:
    jwk = identity["key"]
    thumbprint = canonical({"crv": jwk["crv"], "kty": jwk["kty"], "x": jwk["x"]})
    kid = b64(hashlib.sha256(thumbprint).digest())
    action = {"cluster": identity["cluster"], "id": ulid(), "kind": kind, "actor": identity["id"], "kid": kid, "v": 1, "body": body}
    header = b64(canonical({"alg": "EdDSA", "kid": kid, "typ": "deliberd-action"}))
    key = Ed25519PrivateKey.from_private_bytes(unb64(jwk["d"]))
    signature = key.sign(f"{header}.{b64(canonical(action))}".encode())
    return action | {"sig": f"{header}..{b64(signature)}"}


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--url", default="http://127.0.0.1:7700")
    args.add_argument("--identity", required=True)
    args.add_argument("kind")
    args.add_argument("body", type=json.loads)
    opts = args.parse_args()
    with open(opts.identity, encoding="utf-8") as file:
        identity = json.load(file)
    call = {"jsonrpc": "2.0", "id": 1, "method": opts.kind, "params": sign(identity, opts.kind, opts.body)}
    request = urllib.request.Request(opts.url + "/rpc", json.dumps(call).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = json.load(response)
    print(json.dumps(answer.get("result", answer.get("error")), indent=2))
    return 0 if "result" in answer else 1


if __name__ == "__main__":
    sys.exit(main())
