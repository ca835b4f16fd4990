// Ends with a clear message when this Node.js is too old. Plain old JavaScript: an old one has to understand it.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`Rollcall needs Node.js 20.19 or later; this is ${process.versions.node}.\n`);
  process.exitCode = 1;
}
