// Fails if this Node.js is too old to install the dependencies. The dependencies include the Node.js that runs
// everything else.
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 20) {
  process.stderr.write(`Rollcall needs npm with any Node.js since version 20; this is ${process.versions.node}.\n`);
  process.exitCode = 1;
}
