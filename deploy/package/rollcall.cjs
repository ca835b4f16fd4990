#!/usr/bin/env node
// Starts the program of the npm package, and of other packages with the Node.js that they contain.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 12)) {
  console.error(`rollcall needs Node.js 22.12 or later, and this is ${process.versions.node}`);
  process.exit(1);
}
require("../src/start.cjs");
