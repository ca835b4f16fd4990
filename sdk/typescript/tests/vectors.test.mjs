// Tests decisions that need no connection, with the vectors that all languages share.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { geteuid } from "node:process";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Code } from "@rollcall/client";

const HERE = dirname(fileURLToPath(import.meta.url));
/** Modules of the package that the package does not export. */
const DIST = dirname(fileURLToPath(import.meta.resolve("@rollcall/client")));
/** @param {string} name @returns {Promise<any>} */
const inner = (name) => import(String(pathToFileURL(join(DIST, name))));
const { attemptLimitMs, waitBeforeRetry, waitBeforeResume, DEFAULT_RETRY } = await inner("retry.js");
const { parseBookmark } = await inner("bookmark.js");
const { parseAddress } = await inner("addresses.js");
const { SeenRevision } = await inner("seen-revision.js");
const { resolveTarget } = await inner("target.js");
const { tokenSource } = await inner("credentials.js");

/** @param {string} name @returns {any} */
function read(name) {
  return JSON.parse(readFileSync(join(HERE, "../vectors", name), "utf8"));
}

/** @param {any} it */
function failureOf({ code, reason = "", retry_after_ms: retryAfterMs = null }) {
  const name = code
    .toLowerCase()
    .replace(/(^|_)([a-z])/g, (/** @type {string[]} */ ...[, , letter]) => letter?.toUpperCase());
  return { code: /** @type {any} */ (Code)[name], reason, retryAfterMs };
}

test("retries calls and reopens watches by the table", () => {
  const { retries, attempts, resumes } = read("retries.json");
  for (const one of retries) {
    const made = { attempt: one.attempt, isRepeatable: one.repeatable, random: one.random };
    assert.equal(waitBeforeRetry(DEFAULT_RETRY, failureOf(one), made), one.wait_ms, JSON.stringify(one));
  }
  for (const one of attempts) {
    const made = { timeoutMs: one.timeout_ms, attempt: one.attempt, isRepeatable: one.repeatable };
    assert.equal(attemptLimitMs(DEFAULT_RETRY, made), one.limit_ms, JSON.stringify(one));
  }
  for (const one of resumes) {
    assert.equal(waitBeforeResume(failureOf(one), one.breaks, one.random), one.wait_ms, JSON.stringify(one));
  }
});

test("reads bookmarks", () => {
  for (const { text, token, revision } of read("retries.json").bookmarks) {
    if (token === null) assert.throws(() => parseBookmark(text), RangeError);
    else assert.deepEqual(parseBookmark(text), { token, revision: BigInt(revision) });
  }
});

for (const { text, tls = false, url, refused } of read("addresses.json")) {
  test(`reads the address ${JSON.stringify(text)}`, () => {
    if (refused === undefined) {
      assert.equal(parseAddress(text, "a test", tls).baseUrl, url);
      return;
    }
    assert.throws(
      () => parseAddress(text, "a test", tls),
      ({ message }) => message.includes(refused) && !message.includes("hunter2"),
    );
  });
}

for (const { name, steps, sends } of read("retries.json").revisions) {
  test(`remembers the revision: ${name}`, () => {
    const seen = new SeenRevision();
    for (const { answer, message, failure } of steps) {
      if (answer !== undefined) seen.answered(answer);
      if (message !== undefined) seen.heard(BigInt(message));
      if (failure !== undefined) seen.failed(failure);
    }
    assert.equal(seen.header, sends);
  });
}

for (const one of read("targets.json")) {
  test(`finds the control plane: ${one.name}`, async () => {
    const root = mkdtempSync(join(tmpdir(), "rollcall-target-"));
    const home = join(root, "home");
    for (const [path, text] of Object.entries({ "home/.rollcall/keep": "", "cwd/keep": "", ...one.files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    try {
      const options = Object.fromEntries(
        Object.entries(one.options ?? {}).map(([key, value]) => [
          key.replace(/_([a-z])/g, (/** @type {string[]} */ ...[, letter]) => letter?.toUpperCase() ?? ""),
          value.replace("HOME", home),
        ]),
      );
      const at = { env: one.env ?? {}, home, cwd: join(root, "cwd"), uid: geteuid?.() ?? null };
      if (one.error !== undefined) {
        assert.throws(
          () => resolveTarget(options, at),
          (error) => String(error).includes(one.error),
        );
        return;
      }
      const target = resolveTarget(options, at);
      for (const [name, url] of Object.entries(one.addresses)) assert.equal(target[name].address.baseUrl, url);
      for (const [name, token] of Object.entries(one.tokens)) {
        assert.equal(await tokenSource(target[name].credential)(), token, name);
      }
      assert.equal(target.registry.trust.caFile, one.ca_file ?? null);
      assert.equal(target.registry.trust.serverName, one.server_name ?? null);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
}
