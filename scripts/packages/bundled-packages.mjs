// Finds the third-party packages whose code is in a bundle.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { lockedIntegrity, WORKSPACE } from "./workspace.mjs";

const FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const LICENSE_FILE = /^(licen[cs]e|notice|copying)/i;

/** Find the packages of the files in a bundle, sorted by name. */
export async function bundledPackages(inputs) {
  const folders = new Set(inputs.flatMap((path) => FOLDER.exec(path) ?? []));
  const packages = new Map();
  for (const folder of folders) {
    const found = JSON.parse(await readFile(join(WORKSPACE, folder, "package.json"), "utf8"));
    const { name, version, license } = found;
    packages.set(`${name}@${version}`, { name, version, license, integrity: lockedIntegrity(name, version), folder });
  }
  return [...packages.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, found]) => found);
}

/** Return the licences of packages, each with its original text. */
export async function noticesOf(packages) {
  const parts = [];
  for (const { name, version, license, folder } of packages) {
    const files = (await readdir(join(WORKSPACE, folder))).filter((file) => LICENSE_FILE.test(file)).sort();
    const texts = await Promise.all(files.map((file) => readFile(join(WORKSPACE, folder, file), "utf8")));
    parts.push([`${name} ${version}: ${license}`, ...texts.map((text) => text.trim())].join("\n\n"));
  }
  return `Rollcall contains code of these packages.\n\n${[...parts, SCHEMAS].join(`\n\n${"-".repeat(78)}\n\n`)}\n`;
}

/**
 * These files are in third_party/, and code is generated from them. They have the same licence as Rollcall, whose
 * text is in LICENSE.
 */
const SCHEMAS = `Schemas of others: Apache-2.0

buf.validate: Copyright 2023-2025 Buf Technologies, Inc.
google.rpc: Copyright 2025 Google LLC
grpc.health, grpc.reflection: Copyright 2015-2016 The gRPC Authors

The text of the licence is in the file LICENSE.`;
