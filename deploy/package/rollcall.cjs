#!/bin/sh
//bin/sh -c :; case "${1-} $* " in *" --help "*|*" -h "*) o=1;; "up "*|"serve "*|"agent "*|"keeper "*) o=;; *) o=1;; esac
//bin/sh -c :; [ -z "$o" ] || { true 3>&1;} 2>/dev/null || exec 1</dev/null
//bin/sh -c :; exec node "$0" "$@"
// Starts the program of the npm package, and of other packages with the Node.js that they contain. To Node.js, the
// lines above are comments. In the npm package, the shell runs them: they make writes to a closed standard output fail,
// as bin/rollcall does. Node.js itself would open /dev/null instead.
require("../src/start.cjs");
