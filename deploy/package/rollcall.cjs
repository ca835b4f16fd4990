#!/usr/bin/env node
// Starts the program of a package. The checkout has bin/rollcall instead.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`rollcall needs Node.js 20.19 or later, and this is ${process.versions.node}`);
  process.exit(1);
}
require("../src/start.cjs");
