// npm runs this script when it installs a folder, but not when it installs the published package.
import { existsSync } from "node:fs";
import process from "node:process";

if (!existsSync(new URL("dist/node.js", import.meta.url))) {
  process.stderr.write(
    "A checkout contains no generated and no compiled code, so it cannot be imported.\n" +
      "Run `make sdk NAME=typescript` at the top of the checkout, then install dist/sdk/rollcall-client-*.tgz.\n",
  );
  process.exitCode = 1;
}
