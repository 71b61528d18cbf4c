#!/usr/bin/env node
// Sign one action and send it: sign.mjs --url URL --identity FILE KIND BODY
//
// FILE is an identity as `deliberd agent new` writes it: {cluster, id, key}.
// Needs nothing but Node.
import { createHash, createPrivateKey, randomBytes, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const b64 = (data) => Buffer.from(data).toString("base64url");

// RFC 8785: JSON.stringify already writes strings and numbers as it wants.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

function ulid() {
  let n = (BigInt(Date.now()) << 80n) | BigInt("0x" + randomBytes(10).toString("hex"));
  let text = "";
  for (let i = 0; i < 26; i++, n >>= 5n) text = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Number(n & 31n)] + text;
  return text;
}

function signAction(identity, kind, body) {
  const { crv, kty, x } = identity.key;
  const kid = createHash("sha256").update(canonical({ crv, kty, x })).digest("base64url");
  const action = { cluster: identity.cluster, id: ulid(), kind, actor: identity.id, kid, v: 1, body };
  const header = b64(canonical({ alg: "EdDSA", kid, typ: "deliberd-action" }));
  const key = createPrivateKey({ key: identity.key, format: "jwk" });
  const signature = sign(null, Buffer.from(`${header}.${b64(canonical(action))}`), key);
  return { ...action, sig: `${header}..${b64(signature)}` };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: "string", default: "http://127.0.0.1:7700" }, identity: { type: "string" } },
});
const [kind, body] = positionals;
if (!values.identity || !kind || !body) {
  console.error("usage: sign.mjs --url URL --identity FILE KIND BODY");
  process.exit(2);
}
const identity = JSON.parse(readFileSync(values.identity, "utf8"));
const call = { jsonrpc: "2.0", id: 1, method: kind, params: signAction(identity, kind, JSON.parse(body)) };
const response = await fetch(`${values.url}/rpc`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(call) });
const answer = await response.json();
console.log(JSON.stringify(answer.result ?? answer.error, null, 2));
process.exit("result" in answer ? 0 : 1);
