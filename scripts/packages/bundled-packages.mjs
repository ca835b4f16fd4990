// The packages of others whose code is in a bundle.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { lockedIntegrity, WORKSPACE } from "./workspace.mjs";

const FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const LICENSE_FILE = /^(licen[cs]e|notice|copying)/i;

/** Find the packages among the files that went into a bundle, sorted by name. */
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

/** The licences of packages, each with its text as it came. */
export async function noticesOf(packages) {
  const parts = [];
  for (const { name, version, license, folder } of packages) {
    const files = (await readdir(join(WORKSPACE, folder))).filter((file) => LICENSE_FILE.test(file)).sort();
    const texts = await Promise.all(files.map((file) => readFile(join(WORKSPACE, folder, file), "utf8")));
    parts.push([`${name} ${version}: ${license}`, ...texts.map((text) => text.trim())].join("\n\n"));
  }
  return `Rollcall contains code of these packages.\n\n${[...parts, SCHEMAS].join(`\n\n${"-".repeat(78)}\n\n`)}\n`;
}

/** In third_party/: code is generated from them. Their licence is Rollcall's own, whose text is in LICENSE. */
const SCHEMAS = `Schemas of others: Apache-2.0

buf.validate: Copyright 2023-2025 Buf Technologies, Inc.
google.rpc: Copyright 2025 Google LLC
grpc.health, grpc.reflection: Copyright 2015-2016 The gRPC Authors

The text of the licence is in the file LICENSE.`;
