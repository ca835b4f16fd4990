// npm runs this when a folder is installed, not for the package that is made of it.
import { existsSync } from "node:fs";
import process from "node:process";

if (!existsSync(new URL("dist/node.js", import.meta.url))) {
  process.stderr.write(
    "A checkout has neither what is generated from the schema nor what is compiled, so it could not be imported.\n" +
      "Run `make sdk NAME=typescript` at the top of the checkout, then install dist/sdk/rollcall-client-*.tgz.\n",
  );
  process.exitCode = 1;
}
