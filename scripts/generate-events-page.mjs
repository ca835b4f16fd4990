// Writes docs/events.md from the catalogue in libs/domain, which has to be built. With --check it only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { formatEventCatalogue } from "../libs/domain/dist/index.js";

const page = fileURLToPath(new URL("../docs/events.md", import.meta.url));
const wanted = formatEventCatalogue();
const isCheck = process.argv.includes("--check");
if (read() !== wanted) {
  writeFileSync(page, wanted);
  if (isCheck) {
    process.stderr.write("docs/events.md was not that of the catalogue. It is now: commit it.\n");
    process.exitCode = 1;
  }
}

function read() {
  try {
    return readFileSync(page, "utf8");
  } catch {
    return "";
  }
}
