// Cuts a release, builds it, signs it, and publishes it, as RELEASING.md describes:
//   node scripts/release/main.mjs VERSION [--publish] [--key KEY] [--image REPOSITORY] [--only npm,pypi,maven,oci]
// Without --publish, nothing leaves the machine; each destination only checks the files to publish.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../packages/run.mjs";
import { writeSums } from "../packages/sums.mjs";
import { WORKSPACE } from "../packages/workspace.mjs";
import { renderAll } from "../render-manifests.mjs";
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
  if (version === undefined || positionals.length > 1)
    fail("name exactly one version, for example make release NAME=0.1.0");
  const unknown = only.filter((name) => !(name in DESTINATIONS));
  if (unknown.length > 0) fail(`no destination ${unknown.join(", ")}; use ${Object.keys(DESTINATIONS).join(", ")}`);
  if (git("status", "--porcelain") !== "") fail("a release is built from a commit; commit or stash your changes first");
  if (dryRun) return;
  if (key === undefined) fail("no signing key; name a gpg key with --key, or set git's user.signingKey");
  if (only.includes("oci") && values.image === undefined) fail("name the repository of the image with --image");
}

function isTagged() {
  const found = git("tag", "--list", tags[0]);
  if (found === "") return false;
  if (git("rev-parse", `${tags[0]}^{commit}`) !== git("rev-parse", "HEAD"))
    fail(`${tags[0]} exists at another commit; check it out, or choose another version`);
  return true;
}

/** Commit the version and the changelog, and tag the commit. A second tag lets Go find its module. */
function cut() {
  const path = join(WORKSPACE, "CHANGELOG.md");
  const text = cutChangelog(readFileSync(path, "utf8"), { version, date: new Date().toISOString().slice(0, 10) });
  writeFileSync(path, text);
  const changed = setVersion(WORKSPACE, version);
  // These files repeat the version, and digests of texts with the version.
  const rendered = renderAll();
  for (const [file, content] of rendered) writeFileSync(join(WORKSPACE, file), content);
  git("add", "CHANGELOG.md", ...changed, ...rendered.keys());
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
