// Tests a login that the issuer no longer renews.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const DIST = dirname(fileURLToPath(import.meta.resolve("@rollcall/client")));
/** @type {any} */
const { tokenSource } = await import(String(pathToFileURL(join(DIST, "credentials.js"))));

const root = mkdtempSync(join(tmpdir(), "rollcall-login-"));
const file = join(root, "config.yaml");
let asked = 0;
let url = "";
let onRefusal = () => {};

// Accepts only the refresh token "good".
const issuer = createServer(async (request, response) => {
  /** @param {number} status @param {unknown} fields */
  const answer = (status, fields) => response.writeHead(status).end(JSON.stringify(fields));
  if (request.url !== "/token") return answer(200, { issuer: url, token_endpoint: `${url}/token` });
  asked += 1;
  let body = "";
  for await (const part of request) body += part;
  if (new URLSearchParams(body).get("refresh_token") !== "good") {
    onRefusal();
    return answer(400, { error: "invalid_grant" });
  }
  const claims = Buffer.from('{"aud":"rollcall","exp":9999999999}').toString("base64url");
  return answer(200, { access_token: `e30.${claims}.`, refresh_token: "next" });
});

before(async () => {
  issuer.listen(0, "127.0.0.1");
  await once(issuer, "listening");
  url = `http://127.0.0.1:${/** @type {any} */ (issuer.address()).port}`;
});

after(() => {
  issuer.closeAllConnections();
  issuer.close();
  rmSync(root, { recursive: true, force: true });
});

/** @param {string} refreshToken */
function writeContext(refreshToken) {
  const oidc = { issuer: url, client_id: "cli", audience: "rollcall", refresh_token: refreshToken };
  const lab = { server: "localhost:1", token: "old", oidc: { ...oidc, expires_at: "1970-01-01T00:00:00Z" } };
  writeFileSync(file, JSON.stringify({ contexts: { lab } }), { mode: 0o600 });
}

test("remembers a refusal for a while", async () => {
  writeContext("bad");
  let nowMs = 1e12;
  const token = tokenSource({ kind: "login", file, context: "lab" }, () => nowMs);
  for (let call = 0; call < 50; call += 1) await assert.rejects(token(), /has expired/);
  assert.equal(asked, 1);
  nowMs += 30_000;
  await assert.rejects(token(), /has expired/);
  assert.equal(asked, 2);
  writeContext("good");
  assert.match(await token(), /^e30\./);
});

test("uses what another program saves after a refusal", async () => {
  writeContext("bad");
  onRefusal = () => writeContext("good");
  assert.match(await tokenSource({ kind: "login", file, context: "lab" })(), /^e30\./);
});
