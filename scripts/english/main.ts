// Refuse the phrases of phrases.ts, and the words that the glossary refuses, in everything that people wrote; see
// CONTRIBUTING.md.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { findPhrases, glossaryWords, refusedNames } from "./find-phrases.ts";

const READ = /\.(?:ts|tsx|mjs|cjs|js|go|java|py|proto|sh|md|ya?ml)$|Makefile$/;
/** Matches files that are generated or recorded, or that are about these phrases. */
const LEFT_OUT =
  /(?:^|\/)(?:gen|node_modules|third_party|recordings|baseline|vectors)\/|_pb\.|\.pb\.go$|pnpm-lock|^(?:scripts|tests)\/english|^deploy\/kubernetes\/|^CODE_OF_CONDUCT\.md$/;

const words = glossaryWords(readFileSync("CONTRIBUTING.md", "utf8"));
const files = execFileSync("git", ["ls-files"], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }).split("\n");
let count = 0;
for (const path of files.filter((name) => READ.test(name) && !LEFT_OUT.test(name))) {
  const text = readFileSync(path, "utf8");
  // Skip the glossary, because it contains the words that it refuses.
  const read = path === "CONTRIBUTING.md" ? text.replace(/^\|.*\|$/gm, "") : text;
  for (const { line, found, write } of findPhrases(path, read, words)) {
    process.stdout.write(`${path}:${line}: "${found}": write ${write}\n`);
    count += 1;
  }
  for (const name of refusedNames(read, words)) {
    process.stdout.write(`${path}: ${name}: see the last line of the glossary in CONTRIBUTING.md\n`);
    count += 1;
  }
}
if (count > 0) {
  process.stdout.write(`${count} phrases to rewrite\n`);
  process.exitCode = 1;
}
