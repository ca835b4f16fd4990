// Cuts a release, builds it, signs it, and publishes it; RELEASING.md is about it:
//   node scripts/release/main.mjs VERSION [--publish] [--key KEY] [--image REPOSITORY] [--only npm,pypi,maven,oci]
// Without --publish nothing leaves the machine: each destination checks what it would publish.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../packages/run.mjs";
import { writeSums } from "../packages/sums.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";
import { cutChangelog } from "./changelog.ts";
import { DESTINATIONS } from "./publish.mjs";
import { setVersion } from "./versions.ts";

const DIST = join(WORKSPACE, "dist");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    publish: { type: "boolean", default: false },
    key: { type: "string" },
    image: { type: "string" },
    only: { type: "string", default: Object.keys(DESTINATIONS).join(",") },
  },
});
const [version] = positionals;
const only = values.only.split(",");
const dryRun = !values.publish;
const key = values.key ?? (git("config", "--default", "", "user.signingKey") || undefined);

checkWords();
const tags = [`v${version}`, `sdk/go/v${version}`];
if (isTagged()) say(`${tags[0]} is this commit`);
else cut();
await build();
await sign();
for (const name of only) {
  const published = await DESTINATIONS[name]({ dist: DIST, version, dryRun, key, image: values.image });
  say(`${name}: ${dryRun ? "ready" : "published"}: ${published}`);
}
if (dryRun) say(`nothing was published; \`make release NAME=${version} ARGS=--publish\` publishes this commit`);
else say(`now push the commit and its tags: git push origin HEAD ${tags.join(" ")}`);

function checkWords() {
  if (version === undefined || positionals.length > 1) fail("name one version: make release NAME=0.1.0");
  const unknown = only.filter((name) => !(name in DESTINATIONS));
  if (unknown.length > 0) fail(`no destination ${unknown.join(", ")}; use ${Object.keys(DESTINATIONS).join(", ")}`);
  if (git("status", "--porcelain") !== "") fail("commit or stash your changes first: a release is built from a commit");
  if (dryRun) return;
  if (key === undefined) fail("a release is signed: name a key of gpg with --key, or as user.signingKey of git");
  if (only.includes("oci") && values.image === undefined) fail("name the repository of the image with --image");
}

function isTagged() {
  const found = git("tag", "--list", tags[0]);
  if (found === "") return false;
  if (git("rev-parse", `${tags[0]}^{commit}`) !== git("rev-parse", "HEAD"))
    fail(`${tags[0]} exists and is another commit: check it out, or choose another version`);
  return true;
}

/** Commit the version and the changelog, and tag the commit. Go finds its module by a tag of its own. */
function cut() {
  const path = join(WORKSPACE, "CHANGELOG.md");
  const text = cutChangelog(readFileSync(path, "utf8"), { version, date: new Date().toISOString().slice(0, 10) });
  writeFileSync(path, text);
  git("add", "CHANGELOG.md", ...setVersion(WORKSPACE, version));
  git("commit", "--quiet", "--message", `Release ${version}`);
  for (const tag of tags) git("tag", "--annotate", "--message", `Rollcall ${version}`, tag);
  say(`committed and tagged ${tags.join(" and ")}`);
}

async function build() {
  for (const target of ["dist", "sdk"]) {
    say(`make ${target} ...`);
    await run("make", [target], { cwd: WORKSPACE });
  }
  const count = await writeSums(DIST);
  say(`${relative(process.cwd(), DIST)}/SHA256SUMS lists ${count} files`);
}

async function sign() {
  if (key === undefined) {
    say("not signed: no key");
    return;
  }
  const sums = join(DIST, "SHA256SUMS");
  const words = ["--batch", "--yes", "--armor", "--local-user", key, "--output", `${sums}.asc`, "--detach-sign", sums];
  await run("gpg", words);
  say(`signed by ${key}: ${relative(process.cwd(), sums)}.asc`);
}

function git(...words) {
  return execFileSync("git", words, { cwd: WORKSPACE, encoding: "utf8" }).trim();
}

function say(text) {
  process.stdout.write(`${text}\n`);
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
