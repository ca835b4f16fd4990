#!/usr/bin/env node
// Starts the program of the npm package, and of other packages with the Node.js that they contain.
require("../src/start.cjs");
